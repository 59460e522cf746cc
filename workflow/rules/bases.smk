"""Base models: fetched from the hub, or pretrained from scratch."""


rule fetch_base:
    output:
        directory("<results>/{model}/base"),
    log:
        "<results>/logs/{model}/base.log",
    wildcard_constraints:
        model="|".join(FETCHED) or NOTHING,
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


rule pretrain_base:
    input:
        unpack(real_questions),
    output:
        directory("<results>/{model}/base"),
    log:
        "<results>/logs/{model}/pretrained_base.log",
    benchmark:
        "<results>/benchmarks/{model}/pretrained_base.tsv"
    wildcard_constraints:
        model="|".join(model for model in MODELS if model not in FETCHED) or NOTHING,
    conda:
        "../../envs/train.yaml"
    threads: 8
    resources:
        gpu=1,
        mem_mb=grown(16000),
        runtime=grown(720),
    params:
        script=script("pretrain_base"),
        family=lambda wildcards: config["models"][wildcards.model]["family"],
        pretraining=pretraining_values,
        real=mixed_in,
    message:
        "Pretraining the base of {wildcards.model} from scratch"
    shell:
        "{params.script} --family {params.family} --pretraining {params.pretraining:q}"
        " {params.real} --threads {threads} --output {output} > {log} 2>&1"


# The shipped ones too: they are compared with these, and not overwritten.
rule pretrain_all_bases:
    input:
        bases_from_scratch,
