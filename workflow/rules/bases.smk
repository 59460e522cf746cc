"""Base models: fetched from the hub, converted from a GGUF file, or pretrained from scratch."""

FETCHED_MODELS = jobs.fetched_models(CONFIG)


rule fetch_base:
    """Download a base model from the hub."""
    input:
        parameters="<results>/parameters/{model}/fetch_base.json",
    output:
        directory("<results>/{model}/base"),
    log:
        "<results>/logs/{model}/fetch_base.log",
    wildcard_constraints:
        model="|".join(FETCHED_MODELS) or NEVER_MATCHES,
    priority: TRAJECTORIES_FIRST
    retries: 3
    localrule: True
    conda:
        "../../envs/train.yaml"
    resources:
        mem_mb=doubling(4000),
        runtime=minutes(240),
    message:
        "Base model of {wildcards.model} from the hub"
    shell:
        "python workflow/scripts/fetch_base.py --parameters {input.parameters:q} --output {output:q}"
        " > {log:q} 2>&1"


rule convert_gguf:
    """Convert a base model from a GGUF file."""
    input:
        parameters="<bases>/parameters/{model}/convert_gguf.json",
    output:
        directory("<bases>/{model}/base"),
    log:
        "<bases>/logs/{model}/convert_gguf.log",
    wildcard_constraints:
        model="|".join(jobs.converted_models(CONFIG)) or NEVER_MATCHES,
    priority: TRAJECTORIES_FIRST
    conda:
        "../../envs/train.yaml"
    resources:
        mem_mb=doubling(8000),
        runtime=minutes(30),
    message:
        "Base model of {wildcards.model} from a GGUF file"
    shell:
        "python workflow/scripts/convert_gguf.py --parameters {input.parameters:q} --output {output:q}"
        " > {log:q} 2>&1"


rule pretrain_base:
    """Pretrain a base model from scratch."""
    input:
        unpack(lambda wildcards: targets.pretraining_questions(CONFIG, wildcards.model)),
        parameters="<results>/parameters/{model}/pretrain_base.json",
    output:
        directory("<results>/{model}/base"),
    log:
        "<results>/logs/{model}/pretrain_base.log",
    benchmark:
        "<results>/timings/{model}/pretrain_base.tsv"
    wildcard_constraints:
        model="|".join(model for model in CONFIG.models if model not in FETCHED_MODELS)
        or NEVER_MATCHES,
    priority: TRAJECTORIES_FIRST
    conda:
        "../../envs/train.yaml"
    threads: 8
    resources:
        gpu=1,
        mem_mb=doubling(16000),
        runtime=minutes(720),
    params:
        gsm8k=lambda wildcards, input: targets.options(input, "gsm8k", "excluded"),
    message:
        "Pretraining the base of {wildcards.model} from scratch"
    shell:
        "python workflow/scripts/pretrain_base.py --parameters {input.parameters:q} {params.gsm8k}"
        " --threads {threads} --output {output:q} > {log:q} 2>&1"


# Includes the shipped bases: they are compared with these, and not overwritten.
rule pretrain_all_bases:
    """Target: pretrain all toy bases again, under results/<run>."""
    input:
        lambda wildcards: targets.bases_to_pretrain(CONFIG),
