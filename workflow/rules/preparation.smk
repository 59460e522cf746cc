"""The training of a base before the run. Runs share its result."""


rule draw_questions:
    """Draw the training questions that a base is prepared on."""
    input:
        lambda wildcards: questions_of(
            CONFIG.preparation_for(wildcards.model).benchmark
        ),
    output:
        "<bases>/{model}/{preparation}/questions.parquet",
    log:
        "<bases>/logs/{model}/{preparation}/draw_questions.log",
    priority: TRAJECTORIES_FIRST
    localrule: True
    conda:
        "../../envs/zerogap.yaml"
    params:
        parameters=values("draw_questions"),
    message:
        "Questions that prepare the base of {wildcards.model}"
    shell:
        "python workflow/scripts/draw_questions.py --parameters {params.parameters:q}"
        " --output {output:q} > {log:q} 2>&1"


use rule write_training_data as write_preparation_data with:
    input:
        base=located(targets.unprepared_base, "model"),
        questions="<bases>/{model}/{preparation}/questions.parquet",
    output:
        directory("<bases>/{model}/{preparation}/training/data"),
    log:
        "<bases>/logs/{model}/{preparation}/write_preparation_data.log",
    params:
        parameters=values("write_preparation_data"),
    message:
        "Training examples that prepare the base of {wildcards.model}"


use rule train_lora as train_preparation with:
    input:
        base=located(targets.unprepared_base, "model"),
        data="<bases>/{model}/{preparation}/training/data",
    output:
        adapter=directory("<bases>/{model}/{preparation}/training/adapter"),
        settings="<bases>/{model}/{preparation}/training/train.yaml",
        loss="<bases>/{model}/{preparation}/loss.tsv",
    log:
        "<bases>/logs/{model}/{preparation}/train_preparation.log",
    benchmark:
        "<bases>/timings/{model}/{preparation}/train_preparation.tsv"
    resources:
        gpu=lambda wildcards: CONFIG.preparation_for(
            wildcards.model
        ).training.num_gpus_used,
        nodes=1,
        mem_mb=doubling(96000),
        runtime=minutes(jobs.TIME_LIMITS["train_lora"]),
    params:
        parameters=values("train_preparation"),
        unrecorded=unrecorded("train_preparation"),
    message:
        "Preparation of the base of {wildcards.model}"


use rule merge_lora as merge_preparation with:
    input:
        base=located(targets.unprepared_base, "model"),
        adapter="<bases>/{model}/{preparation}/training/adapter",
    output:
        directory("<bases>/{model}/{preparation}/model"),
    log:
        "<bases>/logs/{model}/{preparation}/merge_preparation.log",
    params:
        parameters=values("merge_preparation"),
    message:
        "Prepared base of {wildcards.model}"
