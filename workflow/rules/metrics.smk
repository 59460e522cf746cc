"""From solve counts to readings: no model, no torch, seconds each."""


rule all_zero:
    input:
        clean="<results>/{model}/clean/batch1/solve.parquet",
        code=sources("metrics"),
    output:
        "<results>/{model}/{domain}/all_zero/solve.parquet",
    log:
        "<results>/logs/{model}/{domain}/all_zero.log",
    wildcard_constraints:
        domain="|".join(DOMAINS),
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=grown(2000),
        runtime=grown(10),
    params:
        script=script("solve_all_zero"),
        facts=facts,
    message:
        "The trivial strategy that fails every question of {wildcards.model}/{wildcards.domain}"
    shell:
        "{params.script} --clean {input.clean} --facts {params.facts:q} --output {output}"
        " > {log} 2>&1"


rule metrics:
    input:
        unpack(solve_tables),
        clean="<results>/{model}/clean/batch1/solve.parquet",
        code=sources("metrics"),
    output:
        "<results>/{model}/{domain}/metrics.parquet",
    log:
        "<results>/logs/{model}/{domain}/metrics.log",
    wildcard_constraints:
        domain="|".join(DOMAINS),
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=grown(4000),
        runtime=grown(20),
    params:
        script=script("metrics"),
        strategies=lambda wildcards: as_json(solve_tables(wildcards)),
        metrics=as_json(BOOTSTRAP | {"bins": config["metrics"]["bins"]}),
        facts=lambda wildcards: as_json({"run": config["run"]}),
    message:
        "Readings of {wildcards.model}/{wildcards.domain}"
    shell:
        "{params.script} --model {wildcards.model} --domain {wildcards.domain}"
        " --clean {input.clean} --strategies {params.strategies:q} --metrics {params.metrics:q}"
        " --facts {params.facts:q} --output {output} > {log} 2>&1"


rule overlap:
    input:
        samples="<results>/{model}/{domain}/identity/samples.parquet",
        greedy="<results>/{model}/{domain}/greedy.parquet",
        questions="<results>/data/questions.parquet",
        code=sources("analysis"),
    output:
        "<results>/{model}/{domain}/overlap.parquet",
    log:
        "<results>/logs/{model}/{domain}/overlap.log",
    wildcard_constraints:
        domain="|".join(DOMAINS),
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=grown(4000),
        runtime=grown(20),
    params:
        script=script("overlap"),
        facts=facts,
    message:
        "Overlap of {wildcards.model}/{wildcards.domain} with its greedy trajectories"
    shell:
        "{params.script} --samples {input.samples} --greedy {input.greedy}"
        " --questions {input.questions} --facts {params.facts:q} --output {output}"
        " > {log} 2>&1"
