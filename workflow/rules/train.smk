"""From base models to clean models, and from these to contaminated ones, by LLaMA-Factory."""


rule write_training_data:
    """Write the examples of a training."""
    input:
        base=located(targets.starting_model, "model", "variant"),
        questions=located(targets.training_questions, "variant"),
        exemplars=EXEMPLARS,
        instructions="<results>/data/instructions.jsonl",
    output:
        directory("<results>/{model}/{variant}/training/data"),
    log:
        "<results>/logs/{model}/{variant}/write_training_data.log",
    priority: TRAJECTORIES_FIRST
    conda:
        "../../envs/zerogap.yaml"
    resources:
        mem_mb=doubling(4000),
        runtime=minutes(20),
    params:
        parameters=values("write_training_data"),
        shared=lambda wildcards, input: targets.options(
            input, "exemplars", "instructions"
        ),
    message:
        "Training examples of {wildcards.model}/{wildcards.variant}"
    shell:
        "python workflow/scripts/write_training_data.py --parameters {params.parameters:q}"
        " --base {input.base:q} --questions {input.questions:q} {params.shared}"
        " --output {output:q} > {log:q} 2>&1"


rule train_lora:
    """Train a LoRA adapter: a clean or a contaminated model."""
    input:
        base=located(targets.starting_model, "model", "variant"),
        data="<results>/{model}/{variant}/training/data",
    output:
        adapter=directory("<results>/{model}/{variant}/training/adapter"),
        settings="<results>/{model}/{variant}/training/train.yaml",
        loss="<results>/{model}/{variant}/loss.tsv",
    log:
        "<results>/logs/{model}/{variant}/train_lora.log",
    benchmark:
        "<results>/timings/{model}/{variant}/train_lora.tsv"
    priority: TRAJECTORIES_FIRST
    conda:
        "../../envs/zerogap.yaml"
    threads: 8
    resources:
        gpu=lambda wildcards: CONFIG.training_for(wildcards.variant).num_gpus_used,
        nodes=1,  # all GPUs of a training are in one machine
        mem_mb=doubling(96000),
        runtime=minutes(jobs.TIME_LIMITS["train_lora"]),
    params:
        parameters=values("train_lora"),
        unrecorded=unrecorded("train_lora"),
    message:
        "LoRA training of {wildcards.model}/{wildcards.variant}"
    shell:
        "python workflow/scripts/train_lora.py --parameters {params.parameters:q}"
        " --unrecorded {params.unrecorded:q}"
        " --base {input.base:q} --data {input.data:q} --settings {output.settings:q}"
        " --adapter {output.adapter:q} --loss {output.loss:q} > {log:q} 2>&1"


rule merge_lora:
    """Merge an adapter into its model."""
    input:
        base=located(targets.starting_model, "model", "variant"),
        adapter="<results>/{model}/{variant}/training/adapter",
    output:
        directory("<results>/{model}/{variant}/model"),
    log:
        "<results>/logs/{model}/{variant}/merge_lora.log",
    priority: TRAJECTORIES_FIRST
    conda:
        "../../envs/zerogap.yaml"
    resources:
        mem_mb=doubling(64000),
        runtime=minutes(60),
    params:
        parameters=values("merge_lora"),
    message:
        "Merged model of {wildcards.model}/{wildcards.variant}"
    shell:
        "python workflow/scripts/merge_lora.py --parameters {params.parameters:q}"
        " --base {input.base:q} --adapter {input.adapter:q} --output {output:q} > {log:q} 2>&1"
