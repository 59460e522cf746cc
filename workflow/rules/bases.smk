"""Base models: fetched from the hub, or (the embedded ones, on request only) pretrained anew."""


rule base_model:
    output:
        directory("<results>/{model}/base"),
    log:
        "<results>/logs/{model}/base.log",
    retries: 3
    localrule: True
    conda:
        "../../envs/train.yaml"
    resources:
        mem_mb=grown(4000),
        runtime=grown(240),
    params:
        script=script("fetch_base"),
        base=lambda wildcards: config["models"][wildcards.model]["base"],
        revision=lambda wildcards: config["models"][wildcards.model].get("revision")
        or "main",
    message:
        "Fetching the base model of {wildcards.model}"
    shell:
        "{params.script} --repository {params.base} --revision {params.revision}"
        " --output {output} > {log} 2>&1"


rule pretrained_base:
    output:
        directory("<results>/bases/{model}"),
    log:
        "<results>/logs/bases/{model}.log",
    benchmark:
        "<results>/benchmarks/bases/{model}.tsv"
    conda:
        "../../envs/train.yaml"
    threads: 1
    resources:
        mem_mb=grown(4000),
        runtime=grown(120),
    params:
        script=script("pretrain_bases"),
        family=lambda wildcards: config["models"][wildcards.model]["family"],
        pretraining=lambda wildcards: as_json(
            config["pretraining"]
            | config["models"][wildcards.model].get("pretraining", {})
            | {"seed": config["seed"]}
        ),
    message:
        "Pretraining the embedded base of {wildcards.model} from scratch"
    shell:
        "{params.script} --family {params.family} --pretraining {params.pretraining:q}"
        " --threads {threads} --output {output} > {log} 2>&1"


# They are compared with, and do not overwrite, the ones that are shipped.
rule pretrain_bases:
    input:
        collect("<results>/bases/{model}", model=MODELS),
