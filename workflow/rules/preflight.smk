"""What would fail hours into a run, looked at before it: by itself, or alone on request."""


# A hook and no rule that others depend on: Snakemake makes again what waits for a file that is
# made again; where it is `ancient` it does not see what else there is to do.
onstart:
    check_before_start()


rule check_preflight:
    log:
        "<results>/logs/preflight.log",
    localrule: True
    conda:
        "../../envs/train.yaml"
    resources:
        mem_mb=grown(2000),
        runtime=grown(10),
    params:
        script=script("check_preflight"),
        config=as_json(config),
    message:
        "What would fail hours later"
    shell:
        "{params.script} --config {params.config:q} > {log} 2>&1"
        " && cat {log} || {{ cat {log} >&2; exit 1; }}"
