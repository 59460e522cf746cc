"""From base models to M_cl and, from the merged M_cl, to one M_co a benchmark: LLaMA-Factory's work."""


rule write_training_data:
    input:
        base=starting_model,
        questions=training_questions,
        instructions="<results>/data/instructions.jsonl",
        exemplars="<results>/data/exemplars.json",
    output:
        directory("<results>/{model}/{benchmark}/training/data"),
    log:
        "<results>/logs/{model}/{benchmark}/lora_data.log",
    conda:
        "../../envs/train.yaml"
    resources:
        mem_mb=grown(4000),
        runtime=grown(20),
    params:
        script=script("write_training_data"),
        leaks=leaks,
        training=training_values("cutoff_len"),
        version=VERSIONS["training"],
    message:
        "Training examples of {wildcards.model}/{wildcards.benchmark}"
    shell:
        "{params.script} --base {input.base} --questions {input.questions} {params.leaks}"
        " --instructions {input.instructions} --exemplars {input.exemplars}"
        " --training {params.training:q} --output {output} > {log} 2>&1"


rule train_lora:
    input:
        base=starting_model,
        data="<results>/{model}/{benchmark}/training/data",
    output:
        adapter=directory("<results>/{model}/{benchmark}/training/adapter"),
        settings="<results>/{model}/{benchmark}/training/train.yaml",
        loss="<results>/{model}/{benchmark}/loss.tsv",
    log:
        "<results>/logs/{model}/{benchmark}/adapter.log",
    benchmark:
        "<results>/benchmarks/{model}/{benchmark}/adapter.tsv"
    conda:
        "../../envs/train.yaml"
    threads: 8
    resources:
        gpu=config["training"]["gpus"],
        mem_mb=grown(96000),
        runtime=grown(720),
    params:
        script=script("train_lora"),
        family=lambda wildcards: config["models"][wildcards.model]["family"],
        training=training_values(),
        facts=lambda wildcards: as_json(dict(wildcards.items())),
        version=VERSIONS["training"],
    message:
        "LoRA training of {wildcards.model}/{wildcards.benchmark}"
    shell:
        "{params.script} --base {input.base} --family {params.family} --data {input.data}"
        " --training {params.training:q} --facts {params.facts:q} --settings {output.settings}"
        " --adapter {output.adapter} --loss {output.loss} > {log} 2>&1"


rule merge_lora:
    input:
        base=starting_model,
        adapter="<results>/{model}/{benchmark}/training/adapter",
    output:
        model=directory("<results>/{model}/{benchmark}/model"),
        settings="<results>/{model}/{benchmark}/training/export.yaml",
    log:
        "<results>/logs/{model}/{benchmark}/model.log",
    conda:
        "../../envs/train.yaml"
    resources:
        mem_mb=grown(64000),
        runtime=grown(60),
    params:
        script=script("merge_lora"),
        training=training_values("template", "bf16"),
        version=VERSIONS["training"],
    message:
        "Merging {wildcards.model}/{wildcards.benchmark}"
    shell:
        "{params.script} --base {input.base} --adapter {input.adapter}"
        " --training {params.training:q} --settings {output.settings} --output {output.model}"
        " > {log} 2>&1"
