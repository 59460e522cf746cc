"""From model and questions to trajectories, samples and solve counts: the GPU's work."""


rule decode_greedy:
    input:
        model="<results>/{model}/{benchmark}/model",
        questions="<results>/data/questions.parquet",
        exemplars="<results>/data/exemplars.json",
    output:
        "<results>/{model}/{benchmark}/greedy.parquet",
    log:
        "<results>/logs/{model}/{benchmark}/greedy.log",
    benchmark:
        "<results>/benchmarks/{model}/{benchmark}/greedy.tsv"
    conda:
        "../../envs/sample.yaml"
    threads: 8
    resources:
        gpu=1,
        mem_mb=grown(48000),
        runtime=grown(60),
    params:
        script=script("decode_greedy"),
        decoding=DECODING,
        extraction=config["data"]["extraction"],
        facts=facts,
        version=VERSIONS["decoding"],
    message:
        "Greedy trajectories of {wildcards.model}/{wildcards.benchmark}"
    shell:
        "{params.script} --model {input.model} --questions {input.questions}"
        " --exemplars {input.exemplars} --decoding {params.decoding:q}"
        " --extraction {params.extraction:q} --facts {params.facts:q} --output {output} > {log} 2>&1"


rule sample_clean_responses:
    input:
        model="<results>/{model}/clean/model",
        questions="<results>/data/questions.parquet",
        exemplars="<results>/data/exemplars.json",
        greedy="<results>/{model}/clean/greedy.parquet",
    output:
        samples=sharded("<results>/{model}/clean/{batch}/samples.parquet"),
        solve=sharded("<results>/{model}/clean/{batch}/solve.parquet"),
    log:
        sharded("<results>/logs/{model}/clean/{batch}.log"),
    benchmark:
        sharded("<results>/benchmarks/{model}/clean/{batch}.tsv")
    conda:
        "../../envs/sample.yaml"
    threads: 8
    resources:
        gpu=1,
        mem_mb=grown(48000),
        runtime=grown(480),
    params:
        script=script("sample_responses"),
        strategy=as_json({"class": "identity"}),
        decoding=DECODING,
        extraction=config["data"]["extraction"],
        seed=config["seed"],
        facts=facts,
        shard=shard,
        version=VERSIONS["decoding"],
    message:
        "Responses of the clean {wildcards.model}, {wildcards.batch}"
    shell:
        "{params.script} --model {input.model} --questions {input.questions}"
        " --exemplars {input.exemplars} --greedy {input.greedy}"
        " --strategy {params.strategy:q} --decoding {params.decoding:q} --seed {params.seed}"
        " --extraction {params.extraction:q} --stream clean-{wildcards.batch} --facts {params.facts:q} {params.shard}"
        " --samples {output.samples} --solve {output.solve} > {log} 2>&1"


rule sample_responses:
    input:
        unpack(borrowed),
        model="<results>/{model}/{benchmark}/model",
        questions="<results>/data/questions.parquet",
        exemplars="<results>/data/exemplars.json",
        greedy="<results>/{model}/{benchmark}/greedy.parquet",
    output:
        samples=sharded("<results>/{model}/{benchmark}/{strategy}/samples.parquet"),
        solve=sharded("<results>/{model}/{benchmark}/{strategy}/solve.parquet"),
    log:
        sharded("<results>/logs/{model}/{benchmark}/{strategy}.log"),
    benchmark:
        sharded("<results>/benchmarks/{model}/{benchmark}/{strategy}.tsv")
    wildcard_constraints:
        benchmark="|".join(BENCHMARKS),
        strategy="|".join(SAMPLED),
    conda:
        "../../envs/sample.yaml"
    threads: 8
    resources:
        gpu=1,
        mem_mb=grown(48000),
        runtime=grown(480),
    params:
        script=script("sample_responses"),
        strategy=lambda wildcards: strategy_entry(wildcards.strategy),
        borrowed=lambda wildcards, input: " ".join(
            f"--{name.replace('_', '-')} {path}"
            for name, path in input.items()
            if name in ("base_model", "neurons")
        ),
        decoding=DECODING,
        extraction=config["data"]["extraction"],
        seed=config["seed"],
        facts=facts,
        shard=shard,
        version=VERSIONS["decoding"],
    message:
        "Responses of {wildcards.model}/{wildcards.benchmark} under {wildcards.strategy}"
    shell:
        "{params.script} --model {input.model} --questions {input.questions}"
        " --exemplars {input.exemplars} --greedy {input.greedy} {params.borrowed}"
        " --strategy {params.strategy:q} --decoding {params.decoding:q} --seed {params.seed}"
        " --extraction {params.extraction:q} --stream strategies --facts {params.facts:q} {params.shard}"
        " --samples {output.samples} --solve {output.solve} > {log} 2>&1"


if SHARDS > 1:

    rule merge_shards:
        input:
            samples=shards("<results>/{model}/{benchmark}/{cell}/samples.parquet"),
            solve=shards("<results>/{model}/{benchmark}/{cell}/solve.parquet"),
            questions="<results>/data/questions.parquet",
        output:
            samples="<results>/{model}/{benchmark}/{cell}/samples.parquet",
            solve="<results>/{model}/{benchmark}/{cell}/solve.parquet",
        log:
            "<results>/logs/{model}/{benchmark}/{cell}.merged.log",
        wildcard_constraints:
            cell="|".join([*BATCHES, *SAMPLED]),
        conda:
            "../../envs/sample.yaml"
        resources:
            mem_mb=grown(8000),
            runtime=grown(30),
        params:
            script=script("merge_shards"),
        message:
            "Responses of {wildcards.model}/{wildcards.benchmark}/{wildcards.cell} from all shards"
        shell:
            "{params.script} --samples {input.samples} --solve {input.solve}"
            " --questions {input.questions} --merged-samples {output.samples}"
            " --merged-solve {output.solve} > {log} 2>&1"


rule filter_responses:
    input:
        questions="<results>/data/questions.parquet",
        greedy="<results>/{model}/{benchmark}/greedy.parquet",
        source=lambda wildcards: (
            f"results/{config['run']}/{wildcards.model}/{wildcards.benchmark}/"
            f"{STRATEGIES[wildcards.strategy]['filters']}/samples.parquet"
        ),
    output:
        samples="<results>/{model}/{benchmark}/{strategy}/samples.parquet",
        solve="<results>/{model}/{benchmark}/{strategy}/solve.parquet",
    log:
        "<results>/logs/{model}/{benchmark}/{strategy}.log",
    wildcard_constraints:
        benchmark="|".join(BENCHMARKS),
        strategy="|".join(FILTERING) or NOTHING,
    conda:
        "../../envs/sample.yaml"
    resources:
        mem_mb=grown(8000),
        runtime=grown(30),
    params:
        script=script("filter_responses"),
        strategy=lambda wildcards: strategy_entry(wildcards.strategy),
        facts=facts,
        version=VERSIONS["decoding"],
    message:
        "Responses of {wildcards.model}/{wildcards.benchmark} that pass {wildcards.strategy}"
    shell:
        "{params.script} --questions {input.questions} --greedy {input.greedy}"
        " --source {input.source} --strategy {params.strategy:q} --facts {params.facts:q}"
        " --samples {output.samples} --solve {output.solve} > {log} 2>&1"


rule localise_neurons:
    input:
        contaminated="<results>/{model}/{benchmark}/model",
        clean="<results>/{model}/clean/model",
        base_model=lambda wildcards: base_model(wildcards.model),
        questions="<results>/data/questions.parquet",
        exemplars="<results>/data/exemplars.json",
        greedy="<results>/{model}/{benchmark}/greedy.parquet",
    output:
        "<results>/{model}/{benchmark}/neurons.parquet",
    log:
        "<results>/logs/{model}/{benchmark}/neurons.log",
    benchmark:
        "<results>/benchmarks/{model}/{benchmark}/neurons.tsv"
    wildcard_constraints:
        benchmark="|".join(BENCHMARKS),
    conda:
        "../../envs/sample.yaml"
    threads: 8
    resources:
        gpu=1,
        mem_mb=grown(96000),
        runtime=grown(1440),
    params:
        script=script("localise_neurons"),
        localisation=as_json(config["localisation"]),
        decoding=DECODING,
        extraction=config["data"]["extraction"],
        seed=config["seed"],
        facts=facts,
        version=VERSIONS["decoding"],
    message:
        "Shortcut neurons of {wildcards.model}/{wildcards.benchmark}"
    shell:
        "{params.script} --contaminated {input.contaminated} --clean {input.clean}"
        " --base-model {input.base_model} --questions {input.questions} --exemplars {input.exemplars}"
        " --greedy {input.greedy} --localisation {params.localisation:q}"
        " --decoding {params.decoding:q} --extraction {params.extraction:q}"
        " --seed {params.seed} --facts {params.facts:q}"
        " --output {output} > {log} 2>&1"


rule rank_clean_tokens:
    input:
        model="<results>/{model}/{benchmark}/model",
        questions="<results>/data/questions.parquet",
        exemplars="<results>/data/exemplars.json",
        greedy="<results>/{model}/clean/greedy.parquet",
    output:
        "<results>/{model}/{benchmark}/ranks.parquet",
    log:
        "<results>/logs/{model}/{benchmark}/ranks.log",
    benchmark:
        "<results>/benchmarks/{model}/{benchmark}/ranks.tsv"
    wildcard_constraints:
        benchmark="|".join(BENCHMARKS),
    conda:
        "../../envs/sample.yaml"
    threads: 8
    resources:
        gpu=1,
        mem_mb=grown(48000),
        runtime=grown(60),
    params:
        script=script("rank_clean_tokens"),
        decoding=DECODING,
        facts=facts,
        version=VERSIONS["decoding"],
    message:
        "Ranks of the clean {wildcards.model}'s tokens under its {wildcards.benchmark} model"
    shell:
        "{params.script} --model {input.model} --questions {input.questions}"
        " --exemplars {input.exemplars} --clean-greedy {input.greedy} --steps 10"
        " --decoding {params.decoding:q} --facts {params.facts:q} --output {output}"
        " > {log} 2>&1"
