"""Base models: fetched from the hub, or converted from a GGUF file."""


rule fetch_base:
    """Download a base model from the hub."""
    output:
        directory("<results>/{model}/base"),
    log:
        "<results>/logs/{model}/fetch_base.log",
    wildcard_constraints:
        model=one_of(jobs.fetched_models(CONFIG)),
    priority: TRAJECTORIES_FIRST
    retries: 3
    localrule: True
    conda:
        "../../envs/zerogap.yaml"
    params:
        parameters=values("fetch_base"),
    message:
        "Base model of {wildcards.model} from the hub"
    shell:
        "python workflow/scripts/fetch_base.py --parameters {params.parameters:q} --output {output:q}"
        " > {log:q} 2>&1"


rule convert_gguf:
    """Convert a base model from a GGUF file."""
    output:
        directory("<bases>/{model}/{converted}"),
    log:
        "<bases>/logs/{model}/{converted}/convert_gguf.log",
    wildcard_constraints:
        model=one_of(jobs.converted_models(CONFIG)),
    priority: TRAJECTORIES_FIRST
    conda:
        "../../envs/zerogap.yaml"
    resources:
        mem_mb=doubling(8000),
        runtime=minutes(30),
    params:
        parameters=values("convert_gguf"),
    message:
        "Base model of {wildcards.model} from a GGUF file"
    shell:
        "python workflow/scripts/convert_gguf.py --parameters {params.parameters:q} --output {output:q}"
        " > {log:q} 2>&1"
