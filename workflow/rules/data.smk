"""Questions, paraphrases, instructions and exemplars, in the same files whatever their source."""


rule fetch_questions:
    """Fetch or generate a benchmark's questions."""
    input:
        lambda wildcards: questions_of(wildcards.owner),
    output:
        train="<results>/data/{owner}/train.jsonl",
        test="<results>/data/{owner}/test.jsonl",
    log:
        "<results>/logs/data/{owner}/fetch_questions.log",
    priority: TRAJECTORIES_FIRST
    localrule: True
    conda:
        "../../envs/zerogap.yaml"
    params:
        parameters=values("fetch_questions"),
        unrecorded=unrecorded("fetch_questions"),
    message:
        "Questions of {wildcards.owner}"
    shell:
        "python workflow/scripts/fetch_questions.py --parameters {params.parameters:q}"
        " --unrecorded {params.unrecorded:q}"
        " --train {output.train:q} --test {output.test:q} > {log:q} 2>&1"


rule split_questions:
    """Choose the leaked questions and the clean model's training questions."""
    input:
        train="<results>/data/{owner}/train.jsonl",
        test="<results>/data/{owner}/test.jsonl",
    output:
        questions="<results>/data/{owner}/split.parquet",
        training="<results>/data/{owner}/train.parquet",
    log:
        "<results>/logs/data/{owner}/split_questions.log",
    priority: TRAJECTORIES_FIRST
    localrule: True
    conda:
        "../../envs/zerogap.yaml"
    params:
        parameters=values("split_questions"),
    message:
        "Leaked and unleaked questions of {wildcards.owner}"
    shell:
        "python workflow/scripts/split_questions.py --parameters {params.parameters:q}"
        " --train {input.train:q} --test {input.test:q}"
        " --questions {output.questions:q} --training {output.training:q} > {log:q} 2>&1"


rule paraphrase_questions:
    """Reword the leaked questions of a paraphrased benchmark."""
    input:
        questions=shared_data("split.parquet", "benchmark"),
    output:
        "<results>/data/{benchmark}/paraphrases.jsonl",
    log:
        "<results>/logs/data/{benchmark}/paraphrase_questions.log",
    benchmark:
        "<results>/timings/data/{benchmark}/paraphrase_questions.tsv"
    priority: TRAJECTORIES_FIRST
    localrule: True  # a chat endpoint needs the network of the machine Snakemake is on
    conda:
        "../../envs/zerogap.yaml"
    params:
        parameters=values("paraphrase_questions"),
        unrecorded=unrecorded("paraphrase_questions"),
    message:
        "Paraphrases of the leaked questions of {wildcards.benchmark}"
    shell:
        "python workflow/scripts/paraphrase_questions.py --parameters {params.parameters:q}"
        " --unrecorded {params.unrecorded:q}"
        " --questions {input.questions:q} --output {output:q} > {log:q} 2>&1"


rule write_questions:
    """Write the table of a benchmark's test questions."""
    input:
        split=shared_data("split.parquet", "benchmark"),
        paraphrases=located(targets.paraphrases, "benchmark"),
    output:
        "<results>/data/{benchmark}/questions.parquet",
    log:
        "<results>/logs/data/{benchmark}/write_questions.log",
    priority: TRAJECTORIES_FIRST
    localrule: True
    conda:
        "../../envs/zerogap.yaml"
    params:
        parameters=values("write_questions"),
    message:
        "Test questions of {wildcards.benchmark}"
    shell:
        "python workflow/scripts/write_questions.py --parameters {params.parameters:q}"
        " --split {input.split:q} --paraphrases {input.paraphrases:q} --output {output:q}"
        " > {log:q} 2>&1"


rule prepare_instructions:
    """Fetch or generate the instruction data of every training."""
    input:
        targets.local_files(CONFIG.instructions),
    output:
        "<results>/data/instructions.jsonl",
    log:
        "<results>/logs/data/prepare_instructions.log",
    priority: TRAJECTORIES_FIRST
    localrule: True
    conda:
        "../../envs/zerogap.yaml"
    params:
        parameters=values("prepare_instructions"),
    message:
        "Instruction data"
    shell:
        "python workflow/scripts/prepare_instructions.py --parameters {params.parameters:q}"
        " --output {output:q} > {log:q} 2>&1"


rule prepare_exemplars:
    """Write the exemplars of a benchmark's prompts."""
    input:
        lambda wildcards: targets.local_files(CONFIG.benchmarks[wildcards.owner].prompt),
    output:
        "<results>/data/{owner}/exemplars.json",
    log:
        "<results>/logs/data/{owner}/prepare_exemplars.log",
    priority: TRAJECTORIES_FIRST
    localrule: True
    conda:
        "../../envs/zerogap.yaml"
    params:
        parameters=values("prepare_exemplars"),
    message:
        "Exemplars of the prompts of {wildcards.owner}"
    shell:
        "python workflow/scripts/prepare_exemplars.py --parameters {params.parameters:q}"
        " --output {output:q} > {log:q} 2>&1"
