"""Questions, paraphrases, instructions and exemplars: the same files whatever their source."""

DATA = config["data"]
PARAPHRASES = DATA["paraphrases"]
LOCAL_CHAT = PARAPHRASES["method"] == "local"


rule fetch_questions:
    input:
        local_files(DATA),
    output:
        train="<results>/data/train.jsonl",
        test="<results>/data/test.jsonl",
    log:
        "<results>/logs/data/raw_questions.log",
    localrule: True
    conda:
        "../../envs/train.yaml"
    resources:
        mem_mb=grown(4000),
        runtime=grown(60),
    params:
        script=script("fetch_questions"),
        kind=DATA["source"],
        source=as_json(source(DATA) | original(DATA) | {"seed": config["seed"]}),
        extraction=DATA["extraction"],
    message:
        "Questions from {params.kind}"
    shell:
        "{params.script} --source {params.source:q} --extraction {params.extraction:q}"
        " --train {output.train} --test {output.test} > {log} 2>&1"


rule split_questions:
    input:
        train="<results>/data/train.jsonl",
        test="<results>/data/test.jsonl",
    output:
        questions="<results>/data/split.parquet",
        train="<results>/data/train.parquet",
    log:
        "<results>/logs/data/split.log",
    localrule: True
    conda:
        "../../envs/train.yaml"
    resources:
        mem_mb=grown(2000),
        runtime=grown(10),
    params:
        script=script("split_questions"),
        n_test=DATA["n_test"],
        n_leaked=DATA["n_leaked"],
        n_train=DATA["n_train"],
        extraction=DATA["extraction"],
        seed=config["seed"],
        facts=as_json({"run": config["run"], "source": source(DATA)}),
    message:
        "{params.n_leaked} of {params.n_test} test questions leak"
    shell:
        "{params.script} --train {input.train} --test {input.test} --n-test {params.n_test}"
        " --n-leaked {params.n_leaked} --n-train {params.n_train} --seed {params.seed}"
        " --extraction {params.extraction:q}"
        " --facts {params.facts:q} --questions {output.questions} --training {output.train}"
        " > {log} 2>&1"


rule paraphrase_questions:
    input:
        "<results>/data/split.parquet",
    output:
        "<results>/data/paraphrases.jsonl",
    log:
        "<results>/logs/data/paraphrases.log",
    benchmark:
        "<results>/benchmarks/data/paraphrases.tsv"
    # A local model is a GPU's work; the network is where Snakemake runs.
    localrule: not LOCAL_CHAT
    conda:
        "../../envs/train.yaml"
    resources:
        gpu=int(LOCAL_CHAT),
        mem_mb=grown(48000 if LOCAL_CHAT else 2000),
        runtime=grown(240),
    params:
        script=script("paraphrase_questions"),
        kind=PARAPHRASES["method"],
        method=as_json(
            {key: PARAPHRASES[key] for key in ("method", "invalid")}
            | PARAPHRASES.get(PARAPHRASES["method"], {})
        ),
        seed=config["seed"],
    message:
        "Paraphrases of the leaked questions by {params.kind}"
    shell:
        "{params.script} --questions {input} --paraphrases {params.method:q} --seed {params.seed}"
        " --output {output} > {log} 2>&1"


rule join_paraphrases:
    input:
        split="<results>/data/split.parquet",
        paraphrases="<results>/data/paraphrases.jsonl",
    output:
        "<results>/data/questions.parquet",
    log:
        "<results>/logs/data/questions.log",
    localrule: True
    conda:
        "../../envs/train.yaml"
    resources:
        mem_mb=grown(2000),
        runtime=grown(10),
    params:
        script=script("join_paraphrases"),
    message:
        "The test questions with their paraphrases"
    shell:
        "{params.script} --questions {input.split} --paraphrases {input.paraphrases}"
        " --output {output} > {log} 2>&1"


rule prepare_instructions:
    input:
        local_files(DATA["instructions"]),
    output:
        "<results>/data/instructions.jsonl",
    log:
        "<results>/logs/data/instructions.log",
    localrule: True
    conda:
        "../../envs/train.yaml"
    resources:
        mem_mb=grown(4000),
        runtime=grown(60),
    params:
        script=script("prepare_instructions"),
        kind=DATA["instructions"]["source"],
        source=as_json(source(DATA["instructions"])),
        n=DATA["instructions"]["n"],
        seed=config["seed"],
    message:
        "Instruction data from {params.kind}"
    shell:
        "{params.script} --source {params.source:q} --n {params.n} --seed {params.seed}"
        " --output {output} > {log} 2>&1"


rule prepare_exemplars:
    output:
        "<results>/data/exemplars.json",
    log:
        "<results>/logs/data/exemplars.log",
    localrule: True
    conda:
        "../../envs/train.yaml"
    resources:
        mem_mb=grown(2000),
        runtime=grown(10),
    params:
        script=script("prepare_exemplars"),
        source=config["prompt"]["exemplars"],
        shots=config["prompt"]["shots"],
    message:
        "The {params.shots} shots of every prompt"
    shell:
        "{params.script} --source {params.source} --n {params.shots} --output {output}"
        " > {log} 2>&1"
