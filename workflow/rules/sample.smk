"""From models and questions to trajectories, responses and solve counts."""

import functools

CELL = "<results>/{model}/{variant}/cells/{cell}"
NEURONS = "<results>/{model}/{variant}/neurons.parquet"
CELL_SHARDS = CONFIG.sampling.num_shards
NEURON_SHARDS = CONFIG.neuron_localisation.num_shards

# The file of one shard.
of_cell = functools.partial(targets.shard_file, CELL_SHARDS)
of_neurons = functools.partial(targets.shard_file, NEURON_SHARDS)


rule decode_greedy:
    """Decode the greedy trajectory of every question."""
    input:
        questions=QUESTIONS,
        exemplars=EXEMPLARS,
        model="<results>/{model}/{variant}/model",
    output:
        "<results>/{model}/{variant}/greedy.parquet",
    log:
        "<results>/logs/{model}/{variant}/decode_greedy.log",
    benchmark:
        "<results>/timings/{model}/{variant}/decode_greedy.tsv"
    priority: TRAJECTORIES_FIRST
    conda:
        DECODING_ENVIRONMENT
    threads: 8
    resources:
        gpu=1,
        mem_mb=doubling(48000),
        runtime=minutes(jobs.TIME_LIMITS["decode_greedy"]),
    params:
        python=DECODING_PYTHON,
        parameters=values("decode_greedy"),
        unrecorded=unrecorded("decode_greedy"),
    message:
        "Greedy trajectories of {wildcards.model}/{wildcards.variant}"
    shell:
        "{params.python} workflow/scripts/decode_greedy.py --parameters {params.parameters:q}"
        " --unrecorded {params.unrecorded:q}"
        " --model {input.model:q} --questions {input.questions:q} --exemplars {input.exemplars:q}"
        " --output {output:q} > {log:q} 2>&1"


# A cell: the responses of a contaminated model under one strategy, or a clean model's batch.
rule sample_responses:
    """Sample responses to every question under one strategy."""
    input:
        unpack(located(targets.strategy_inputs, "model", "variant", "cell")),
        questions=QUESTIONS,
        exemplars=EXEMPLARS,
        model="<results>/{model}/{variant}/model",
        greedy="<results>/{model}/{variant}/greedy.parquet",
    output:
        samples=of_cell(f"{CELL}/samples.parquet"),
        solve=of_cell(f"{CELL}/solve.parquet"),
    log:
        of_cell("<results>/logs/{model}/{variant}/cells/{cell}/sample_responses.log"),
    benchmark:
        of_cell("<results>/timings/{model}/{variant}/cells/{cell}.tsv")
    conda:
        DECODING_ENVIRONMENT
    threads: 8
    resources:
        gpu=1,
        mem_mb=doubling(48000),
        runtime=minutes(jobs.TIME_LIMITS["sample_responses"]),
    params:
        python=DECODING_PYTHON,
        parameters=values("sample_responses"),
        unrecorded=unrecorded("sample_responses"),
        strategy_inputs=lambda wildcards, input: targets.options(
            input, "base_model", "neurons"
        ),
        shard=lambda wildcards: targets.shard_option(CELL_SHARDS, wildcards),
    message:
        "Responses of {wildcards.model}/{wildcards.variant}, {wildcards.cell}"
    shell:
        "{params.python} workflow/scripts/sample_responses.py --parameters {params.parameters:q}"
        " --unrecorded {params.unrecorded:q}"
        " --model {input.model:q} --questions {input.questions:q} --exemplars {input.exemplars:q}"
        " --greedy {input.greedy:q} {params.strategy_inputs} {params.shard}"
        " --samples {output.samples:q} --solve {output.solve:q} > {log:q} 2>&1"


if CELL_SHARDS > 1:

    rule merge_shards:
        """Join the shards of a cell's responses."""
        input:
            questions=QUESTIONS,
            samples=targets.shard_files(CELL_SHARDS, f"{CELL}/samples.parquet"),
            solve=targets.shard_files(CELL_SHARDS, f"{CELL}/solve.parquet"),
        output:
            samples=f"{CELL}/samples.parquet",
            solve=f"{CELL}/solve.parquet",
        log:
            "<results>/logs/{model}/{variant}/cells/{cell}/merge_shards.log",
        conda:
            "../../envs/zerogap.yaml"
        resources:
            mem_mb=doubling(8000),
            runtime=minutes(30),
        message:
            "Responses of {wildcards.model}/{wildcards.variant}, {wildcards.cell}, of all shards"
        shell:
            "python workflow/scripts/merge_shards.py --samples {input.samples:q}"
            " --solve {input.solve:q} --questions {input.questions:q}"
            " --merged-samples {output.samples:q} --merged-solve {output.solve:q} > {log:q} 2>&1"


rule filter_responses:
    """Drop the responses that a filtering strategy rejects (TED)."""
    input:
        source=located(targets.filtered_samples, "model", "benchmark", "strategy"),
        questions="<results>/data/{benchmark}/questions.parquet",
        greedy="<results>/{model}/{benchmark}/greedy.parquet",
    output:
        samples="<results>/{model}/{benchmark}/cells/{strategy}/samples.parquet",
        solve="<results>/{model}/{benchmark}/cells/{strategy}/solve.parquet",
    log:
        "<results>/logs/{model}/{benchmark}/cells/{strategy}/filter_responses.log",
    conda:
        "../../envs/zerogap.yaml"
    resources:
        mem_mb=doubling(8000),
        runtime=minutes(30),
    params:
        strategy=lambda wildcards: parameters.strategy(CONFIG, wildcards.strategy),
        metadata=metadata,
        code=lambda wildcards: parameters.code(
            "filter_responses",
            parameters.strategy_module(CONFIG, wildcards.strategy),
        ),
    message:
        "Responses of {wildcards.model}/{wildcards.benchmark} that pass {wildcards.strategy}"
    script:
        "../scripts/filter_responses.py"


rule localise_neurons:
    """Search for the neurons that Shortcut patches."""
    input:
        base_model=located(targets.base_model, "model"),
        clean=clean("model"),
        questions=QUESTIONS,
        exemplars=EXEMPLARS,
        contaminated="<results>/{model}/{variant}/model",
        greedy="<results>/{model}/{variant}/greedy.parquet",
    output:
        of_neurons(NEURONS),
    log:
        of_neurons("<results>/logs/{model}/{variant}/localise_neurons.log"),
    benchmark:
        of_neurons("<results>/timings/{model}/{variant}/localise_neurons.tsv")
    wildcard_constraints:
        variant="|".join(CONFIG.benchmarks),
    conda:
        "../../envs/zerogap.yaml"
    threads: 8
    resources:
        gpu=1,
        mem_mb=doubling(96000),
        runtime=minutes(jobs.TIME_LIMITS["localise_neurons"]),
    params:
        parameters=values("localise_neurons"),
        unrecorded=unrecorded("localise_neurons"),
        shard=lambda wildcards: targets.shard_option(NEURON_SHARDS, wildcards),
    message:
        "Shortcut neurons of {wildcards.model}/{wildcards.variant}"
    shell:
        "python workflow/scripts/localise_neurons.py --parameters {params.parameters:q}"
        " --unrecorded {params.unrecorded:q}"
        " --contaminated {input.contaminated:q} --clean {input.clean:q}"
        " --base-model {input.base_model:q} --questions {input.questions:q}"
        " --exemplars {input.exemplars:q} --greedy {input.greedy:q} {params.shard}"
        " --output {output:q} > {log:q} 2>&1"


if NEURON_SHARDS > 1:

    rule merge_neurons:
        """Join the shards of a neuron localisation."""
        input:
            targets.shard_files(NEURON_SHARDS, NEURONS),
        output:
            NEURONS,
        log:
            "<results>/logs/{model}/{variant}/merge_neurons.log",
        wildcard_constraints:
            variant="|".join(CONFIG.benchmarks),
        conda:
            "../../envs/zerogap.yaml"
        resources:
            mem_mb=doubling(8000),
            runtime=minutes(30),
        message:
            "Shortcut neurons of {wildcards.model}/{wildcards.variant}, of all shards"
        shell:
            "python workflow/scripts/merge_neurons.py --shards {input:q}"
            " --output {output:q} > {log:q} 2>&1"


rule rank_clean_tokens:
    """Rank the clean model's tokens under the contaminated one (Figure 1b, d)."""
    input:
        clean_greedy=clean("greedy.parquet"),
        questions=QUESTIONS,
        exemplars=EXEMPLARS,
        model="<results>/{model}/{variant}/model",
    output:
        "<results>/{model}/{variant}/ranks.parquet",
    log:
        "<results>/logs/{model}/{variant}/rank_clean_tokens.log",
    benchmark:
        "<results>/timings/{model}/{variant}/rank_clean_tokens.tsv"
    wildcard_constraints:
        variant="|".join(CONFIG.benchmarks),
    conda:
        "../../envs/zerogap.yaml"
    threads: 8
    resources:
        gpu=1,
        mem_mb=doubling(48000),
        runtime=minutes(jobs.TIME_LIMITS["rank_clean_tokens"]),
    params:
        parameters=values("rank_clean_tokens"),
    message:
        "Ranks of the clean {wildcards.model}'s tokens under its {wildcards.variant} model"
    shell:
        "python workflow/scripts/rank_clean_tokens.py --parameters {params.parameters:q}"
        " --model {input.model:q} --questions {input.questions:q} --exemplars {input.exemplars:q}"
        " --clean-greedy {input.clean_greedy:q} --output {output:q} > {log:q} 2>&1"


rule measure_recovery:
    """Sample responses of the clean model after a forced runner-up."""
    input:
        questions=QUESTIONS,
        exemplars=EXEMPLARS,
        model="<results>/{model}/{variant}/model",
        greedy="<results>/{model}/{variant}/greedy.parquet",
    output:
        "<results>/{model}/{variant}/recovery.parquet",
    log:
        "<results>/logs/{model}/{variant}/measure_recovery.log",
    benchmark:
        "<results>/timings/{model}/{variant}/measure_recovery.tsv"
    wildcard_constraints:
        variant="|".join(CONFIG.clean_variants),
    conda:
        "../../envs/zerogap.yaml"
    threads: 8
    resources:
        gpu=1,
        mem_mb=doubling(48000),
        runtime=minutes(jobs.TIME_LIMITS["measure_recovery"]),
    params:
        parameters=values("measure_recovery"),
        unrecorded=unrecorded("measure_recovery"),
    message:
        "Responses of {wildcards.model}/{wildcards.variant} after a forced runner-up"
    shell:
        "python workflow/scripts/measure_recovery.py --parameters {params.parameters:q}"
        " --unrecorded {params.unrecorded:q}"
        " --model {input.model:q} --questions {input.questions:q} --exemplars {input.exemplars:q}"
        " --greedy {input.greedy:q} --output {output:q} > {log:q} 2>&1"


rule replay_rail:
    """Count the steps of the responses on the rail."""
    input:
        clean_samples=clean("cells/batch1/samples.parquet"),
        clean_greedy=clean("greedy.parquet"),
        samples=collect(
            "<results>/{{model}}/{{benchmark}}/cells/{strategy}/samples.parquet",
            strategy=jobs.rail_thresholds(CONFIG),
        ),
        greedy="<results>/{model}/{benchmark}/greedy.parquet",
        questions="<results>/data/{benchmark}/questions.parquet",
        model="<results>/{model}/{benchmark}/model",
    output:
        "<results>/{model}/{benchmark}/rail.parquet",
    log:
        "<results>/logs/{model}/{benchmark}/replay_rail.log",
    conda:
        "../../envs/zerogap.yaml"
    resources:
        mem_mb=doubling(8000),
        runtime=minutes(30),
    params:
        thresholds=jobs.rail_thresholds(CONFIG),
        metadata=metadata,
        code=parameters.code("replay_rail"),
    message:
        "Steps of {wildcards.model}/{wildcards.benchmark} on its greedy trajectories"
    script:
        "../scripts/replay_rail.py"
