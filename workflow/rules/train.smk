"""From base models to M_cl and, from the merged M_cl, to one M_co a domain: LLaMA-Factory's work."""


rule lora_data:
    input:
        base=starting_model,
        questions=training_questions,
        instructions="<results>/data/instructions.jsonl",
        exemplars="<results>/data/exemplars.json",
    output:
        directory("<results>/{model}/{domain}/training/data"),
    log:
        "<results>/logs/{model}/{domain}/lora_data.log",
    conda:
        "../../envs/train.yaml"
    resources:
        mem_mb=grown(4000),
        runtime=grown(20),
    params:
        script=script("lora_data"),
        leaks=leaks,
        training=training_values("cutoff_len"),
        version=VERSIONS["training"],
    message:
        "Training examples of {wildcards.model}/{wildcards.domain}"
    shell:
        "{params.script} --base {input.base} --questions {input.questions} {params.leaks}"
        " --instructions {input.instructions} --exemplars {input.exemplars}"
        " --training {params.training:q} --output {output} > {log} 2>&1"


rule adapter:
    input:
        base=starting_model,
        data="<results>/{model}/{domain}/training/data",
    output:
        adapter=directory("<results>/{model}/{domain}/training/adapter"),
        settings="<results>/{model}/{domain}/training/train.yaml",
        loss="<results>/{model}/{domain}/loss.tsv",
    log:
        "<results>/logs/{model}/{domain}/adapter.log",
    benchmark:
        "<results>/benchmarks/{model}/{domain}/adapter.tsv"
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
        "LoRA training of {wildcards.model}/{wildcards.domain}"
    shell:
        "{params.script} --base {input.base} --family {params.family} --data {input.data}"
        " --training {params.training:q} --facts {params.facts:q} --settings {output.settings}"
        " --adapter {output.adapter} --loss {output.loss} > {log} 2>&1"


rule model:
    input:
        base=starting_model,
        adapter="<results>/{model}/{domain}/training/adapter",
    output:
        model=directory("<results>/{model}/{domain}/model"),
        settings="<results>/{model}/{domain}/training/export.yaml",
    log:
        "<results>/logs/{model}/{domain}/model.log",
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
        "Merging {wildcards.model}/{wildcards.domain}"
    shell:
        "{params.script} --base {input.base} --adapter {input.adapter}"
        " --training {params.training:q} --settings {output.settings} --output {output.model}"
        " > {log} 2>&1"
