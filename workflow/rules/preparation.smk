"""The training of a base before the run, by the rules of all trainings; runs share its result."""


rule draw_preparation_questions:
    """Draw the questions on which a base is prepared."""
    input:
        lambda wildcards: targets.preparation_files(CONFIG, wildcards.model),
        parameters="<bases>/parameters/{model}/{preparation}/draw_preparation_questions.json",
    output:
        "<bases>/{model}/{preparation}/questions.parquet",
    log:
        "<bases>/logs/{model}/{preparation}/draw_preparation_questions.log",
    localrule: True
    conda:
        "../../envs/train.yaml"
    resources:
        mem_mb=doubling(4000),
        runtime=minutes(60),
    message:
        "Questions that prepare the base of {wildcards.model}"
    shell:
        "python workflow/scripts/draw_preparation_questions.py --parameters {input.parameters:q}"
        " --output {output:q} > {log:q} 2>&1"


use rule write_training_data as write_preparation_data with:
    input:
        base=unprepared_base,
        questions="<bases>/{model}/{preparation}/questions.parquet",
        parameters="<bases>/parameters/{model}/{preparation}/write_preparation_data.json",
    output:
        directory("<bases>/{model}/{preparation}/training/data"),
    log:
        "<bases>/logs/{model}/{preparation}/write_preparation_data.log",
    message:
        "Training examples that prepare the base of {wildcards.model}"


use rule train_lora as train_preparation with:
    input:
        base=unprepared_base,
        data="<bases>/{model}/{preparation}/training/data",
        parameters="<bases>/parameters/{model}/{preparation}/train_preparation.json",
    output:
        adapter=directory("<bases>/{model}/{preparation}/training/adapter"),
        settings="<bases>/{model}/{preparation}/training/train.yaml",
        loss="<bases>/{model}/{preparation}/loss.tsv",
    log:
        "<bases>/logs/{model}/{preparation}/train_preparation.log",
    benchmark:
        "<bases>/timings/{model}/{preparation}/train_preparation.tsv"
    resources:
        gpu=lambda wildcards: CONFIG.preparation_for(wildcards.model).training.num_gpus,
        mem_mb=doubling(96000),
        runtime=minutes(720),
    message:
        "Preparation of the base of {wildcards.model}"


use rule merge_lora as merge_preparation with:
    input:
        base=unprepared_base,
        adapter="<bases>/{model}/{preparation}/training/adapter",
        parameters="<bases>/parameters/{model}/{preparation}/merge_preparation.json",
    output:
        directory("<bases>/{model}/{preparation}/model"),
    log:
        "<bases>/logs/{model}/{preparation}/merge_preparation.log",
    message:
        "Prepared base of {wildcards.model}"
