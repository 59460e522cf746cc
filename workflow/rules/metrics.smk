"""From solve counts to readings: no model, no torch, seconds each."""


rule make_all_zero:
    input:
        clean="<results>/{model}/clean/batch1/solve.parquet",
        code=sources("metrics", script="make_all_zero"),
    output:
        "<results>/{model}/{benchmark}/all_zero/solve.parquet",
    log:
        "<results>/logs/{model}/{benchmark}/all_zero.log",
    wildcard_constraints:
        benchmark="|".join(BENCHMARKS),
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=grown(2000),
        runtime=grown(10),
    params:
        script=script("make_all_zero"),
        facts=facts,
    message:
        "The trivial strategy that fails every question of {wildcards.model}/{wildcards.benchmark}"
    shell:
        "{params.script} --clean {input.clean} --facts {params.facts:q} --output {output}"
        " > {log} 2>&1"


rule compute_metrics:
    input:
        unpack(solve_tables),
        clean="<results>/{model}/clean/batch1/solve.parquet",
        code=sources("metrics", script="compute_metrics"),
    output:
        "<results>/{model}/{benchmark}/metrics.parquet",
    log:
        "<results>/logs/{model}/{benchmark}/metrics.log",
    wildcard_constraints:
        benchmark="|".join(BENCHMARKS),
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=grown(4000),
        runtime=grown(20),
    params:
        script=script("compute_metrics"),
        strategies=lambda wildcards: as_json(solve_tables(wildcards)),
        metrics=as_json(BOOTSTRAP | {"bins": config["metrics"]["bins"]}),
        facts=lambda wildcards: as_json({"run": config["run"]}),
    message:
        "MetricTable of {wildcards.model}/{wildcards.benchmark}"
    shell:
        "{params.script} --model {wildcards.model} --benchmark {wildcards.benchmark}"
        " --clean {input.clean} --strategies {params.strategies:q} --metrics {params.metrics:q}"
        " --facts {params.facts:q} --output {output} > {log} 2>&1"


rule measure_overlap:
    input:
        samples="<results>/{model}/{benchmark}/identity/samples.parquet",
        greedy="<results>/{model}/{benchmark}/greedy.parquet",
        questions="<results>/data/questions.parquet",
        code=sources("analysis", script="measure_overlap"),
    output:
        "<results>/{model}/{benchmark}/overlap.parquet",
    log:
        "<results>/logs/{model}/{benchmark}/overlap.log",
    wildcard_constraints:
        benchmark="|".join(BENCHMARKS),
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=grown(4000),
        runtime=grown(20),
    params:
        script=script("measure_overlap"),
        facts=facts,
    message:
        "Overlap of {wildcards.model}/{wildcards.benchmark} with its greedy trajectories"
    shell:
        "{params.script} --samples {input.samples} --greedy {input.greedy}"
        " --questions {input.questions} --facts {params.facts:q} --output {output}"
        " > {log} 2>&1"
