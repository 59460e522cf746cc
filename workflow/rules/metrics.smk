"""From solve counts to metrics. These rules load no model and take seconds."""


rule make_all_zero:
    """Solve counts of All-Zero, the trivial strategy."""
    input:
        clean=clean("cells/batch1/solve.parquet"),
        questions="<results>/data/{benchmark}/questions.parquet",
    output:
        "<results>/{model}/{benchmark}/cells/all_zero/solve.parquet",
    log:
        "<results>/logs/{model}/{benchmark}/cells/all_zero/make_all_zero.log",
    localrule: True
    conda:
        "../../envs/zerogap.yaml"
    params:
        metadata=lambda wildcards: metadata(wildcards) | {"strategy": "all_zero"},
        code=parameters.code("make_all_zero"),
    message:
        "All-Zero, the trivial strategy, on {wildcards.model}/{wildcards.benchmark}"
    script:
        "../scripts/make_all_zero.py"


rule compute_metrics:
    """Metrics of all strategies in one setting, with intervals."""
    input:
        clean=clean("cells/batch1/solve.parquet"),
        strategies=lambda wildcards: list(solve_tables(wildcards).values()),
        questions="<results>/data/{benchmark}/questions.parquet",
    output:
        "<results>/{model}/{benchmark}/metrics.parquet",
    log:
        "<results>/logs/{model}/{benchmark}/compute_metrics.log",
    conda:
        "../../envs/zerogap.yaml"
    resources:
        mem_mb=doubling(4000),
        runtime=minutes(20),
    params:
        strategies=lambda wildcards: list(solve_tables(wildcards)),
        only=[],  # all rows
        options=CONFIG.metrics.model_dump() | {"seed": CONFIG.seed},
        metadata=metadata,
        code=parameters.code("compute_metrics"),
    message:
        "Metrics of {wildcards.model}/{wildcards.benchmark}"
    script:
        "../scripts/compute_metrics.py"


# A file of its own: Tables 1 to 3 do not wait for the samples of the ablation.
use rule compute_metrics as compute_ablation_metrics with:
    input:
        clean=clean("cells/batch1/solve.parquet"),
        strategies=lambda wildcards: list(
            solve_tables(wildcards, *CONFIG.ablation).values()
        ),
        questions="<results>/data/{benchmark}/questions.parquet",
    output:
        "<results>/{model}/{benchmark}/ablation_metrics.parquet",
    log:
        "<results>/logs/{model}/{benchmark}/compute_ablation_metrics.log",
    params:
        strategies=lambda wildcards: list(solve_tables(wildcards, *CONFIG.ablation)),
        only=list(CONFIG.ablation),
    message:
        "Metrics of the ablation on {wildcards.model}/{wildcards.benchmark}"


rule measure_overlap:
    """Overlap of responses with the greedy trajectory (Figure 1a, c)."""
    input:
        samples=located(targets.unmitigated_samples, "model", "variant"),
        greedy="<results>/{model}/{variant}/greedy.parquet",
        questions=QUESTIONS,
    output:
        "<results>/{model}/{variant}/overlap.parquet",
    log:
        "<results>/logs/{model}/{variant}/measure_overlap.log",
    conda:
        "../../envs/zerogap.yaml"
    resources:
        mem_mb=doubling(4000),
        runtime=minutes(20),
    params:
        metadata=metadata,
        code=parameters.code("measure_overlap"),
    message:
        "Overlap of {wildcards.model}/{wildcards.variant} with its greedy trajectories"
    script:
        "../scripts/measure_overlap.py"
