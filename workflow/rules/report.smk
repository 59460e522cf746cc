"""What people read: tables, figures, the claims sheet and the check of memorisation."""

SETTING_TITLE = "{} × {}".format(
    CONFIG.models[SETTING["model"]].label,
    CONFIG.benchmarks[SETTING["benchmark"]].label,
)
SETTING_SOLVE = {
    name: path
    for name, path in targets.solve_tables(CONFIG, **SETTING).items()
    if name != "clean_batch2"
}
ALL_METRICS = collect(
    "<results>/{model}/{benchmark}/metrics.parquet", model=MODELS, benchmark=BENCHMARKS
)
SCALE = (
    f"Run “{CONFIG.run}”: N = {CONFIG.benchmarks[SETTING['benchmark']].num_test} questions "
    f"({CONFIG.benchmarks[SETTING['benchmark']].num_leaked} leaked), "
    f"m = {CONFIG.sampling.num_samples} samples each, B = {CONFIG.metrics.bins}, "
    f"{len(MODELS)} model(s), {len(BENCHMARKS)} contamination benchmark(s), "
    f"{CONFIG.benchmarks[SETTING['benchmark']].prompt.num_shots} shots; base models: "
    + ", ".join(f"{entry.label} from {entry.base}" for entry in CONFIG.models.values())
    + "."
)
DOCUMENT = [".csv", ".md", ".tex", ".json"]


rule table_main:
    input:
        metrics=ALL_METRICS,
        code=sources("reporting", script="table"),
    output:
        multiext("<reports>/tables/main", *DOCUMENT),
        html=report(
            "<reports>/tables/main.html",
            caption="../report/table_main.rst",
            category="Tables",
            subcategory="The paper's",
            labels={"table": "3", "shows": "SA-PPG in every setting"},
        ),
    log:
        "<results>/logs/tables/main.log",
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=doubling(2000),
        runtime=doubling(10),
    params:
        script=script("table"),
        prefix=subpath(output.html, strip_suffix=".html"),
        arguments="--table main",
        labels=labels(),
        scale=SCALE,
        facts=as_json({"run": CONFIG.run}),
    message:
        "Table 3: SA-PPG of every strategy in every setting"
    shell:
        "{params.script} {params.arguments} --metrics {input.metrics} --labels {params.labels:q}"
        " --scale {params.scale:q} --facts {params.facts:q}"
        " --output {params.prefix} > {log} 2>&1"


use rule table_main as table_reversal with:
    input:
        metrics=in_setting("metrics.parquet"),
        code=sources("reporting", script="table"),
    output:
        multiext("<reports>/tables/reversal", *DOCUMENT),
        html=report(
            "<reports>/tables/reversal.html",
            caption="../report/table_reversal.rst",
            category="Tables",
            subcategory="The paper's",
            labels={"table": "1", "shows": "G-AP against SA-PPG"},
        ),
    log:
        "<results>/logs/tables/reversal.log",
    params:
        script=script("table"),
        prefix=subpath(output.html, strip_suffix=".html"),
        arguments="--table reversal --setting {model} {benchmark}".format(**SETTING),
        labels=labels(),
        scale=SCALE,
        facts=as_json({"run": CONFIG.run}),
    message:
        "Table 1: the same responses under G-AP and SA-PPG"


use rule table_reversal as table_decomposition with:
    output:
        multiext("<reports>/tables/decomposition", *DOCUMENT),
        html=report(
            "<reports>/tables/decomposition.html",
            caption="../report/table_decomposition.rst",
            category="Tables",
            subcategory="The paper's",
            labels={"table": "2", "shows": "decomposition"},
        ),
    log:
        "<results>/logs/tables/decomposition.log",
    params:
        script=script("table"),
        prefix=subpath(output.html, strip_suffix=".html"),
        arguments="--table decomposition --setting {model} {benchmark}".format(
            **SETTING
        ),
        labels=labels(),
        scale=SCALE,
        facts=as_json({"run": CONFIG.run}),
    message:
        "Table 2: where the gaps are, and how each metric adds them up"


use rule table_reversal as table_ablation with:
    output:
        multiext("<reports>/tables/ablation", *DOCUMENT),
        html=report(
            "<reports>/tables/ablation.html",
            caption="../report/table_ablation.rst",
            category="Tables",
            subcategory="The paper's",
            labels={"table": "4", "shows": "ablation of RailCap"},
        ),
    log:
        "<results>/logs/tables/ablation.log",
    params:
        script=script("table"),
        prefix=subpath(output.html, strip_suffix=".html"),
        arguments="--table ablation --setting {model} {benchmark}".format(**SETTING),
        labels=labels(),
        scale=SCALE,
        facts=as_json({"run": CONFIG.run}),
    message:
        "Table 4: RailCap's n-gram threshold and form of suppression"


use rule table_main as table_intervals with:
    output:
        multiext("<reports>/tables/intervals", *DOCUMENT),
        html=report(
            "<reports>/tables/intervals.html",
            caption="../report/table_intervals.rst",
            category="Tables",
            subcategory="Beyond the paper",
            labels={"table": "intervals", "shows": "every reading with its interval"},
        ),
    log:
        "<results>/logs/tables/intervals.log",
    params:
        script=script("table"),
        prefix=subpath(output.html, strip_suffix=".html"),
        arguments="--table intervals",
        labels=labels(),
        scale=SCALE,
        facts=as_json({"run": CONFIG.run}),
    message:
        "Every reading with its interval"


use rule table_main as table_subsets with:
    output:
        multiext("<reports>/tables/subsets", *DOCUMENT),
        html=report(
            "<reports>/tables/subsets.html",
            caption="../report/table_subsets.rst",
            category="Tables",
            subcategory="Beyond the paper",
            labels={"table": "subsets", "shows": "leaked and unleaked apart"},
        ),
    log:
        "<results>/logs/tables/subsets.log",
    params:
        script=script("table"),
        prefix=subpath(output.html, strip_suffix=".html"),
        arguments="--table subsets",
        labels=labels(),
        scale=SCALE,
        facts=as_json({"run": CONFIG.run}),
    message:
        "Leaked and unleaked questions apart"


use rule table_main as table_noise_floor with:
    output:
        multiext("<reports>/tables/noise_floor", *DOCUMENT),
        html=report(
            "<reports>/tables/noise_floor.html",
            caption="../report/table_noise_floor.rst",
            category="Tables",
            subcategory="Beyond the paper",
            labels={"table": "noise floor", "shows": "two batches of one model"},
        ),
    log:
        "<results>/logs/tables/noise_floor.log",
    params:
        script=script("table"),
        prefix=subpath(output.html, strip_suffix=".html"),
        arguments="--table noise_floor",
        labels=labels(),
        scale=SCALE,
        facts=as_json({"run": CONFIG.run}),
    message:
        "What two batches of one model read"


rule table_beside_paper:
    input:
        metrics=lambda wildcards: (
            ALL_METRICS if wildcards.table == "main" else in_setting("metrics.parquet")
        ),
        published="workflow/resources/published.csv",
        code=sources("reporting", script="table"),
    output:
        multiext("<reports>/tables/{table}_beside_paper", *DOCUMENT),
        html=report(
            "<reports>/tables/{table}_beside_paper.html",
            caption="../report/table_beside_paper.rst",
            category="Tables",
            subcategory="Beside the paper",
            labels={"table": "{table}", "shows": "the paper's | ours"},
        ),
    log:
        "<results>/logs/tables/{table}_beside_paper.log",
    wildcard_constraints:
        table="main|reversal|decomposition|ablation",
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=doubling(2000),
        runtime=doubling(10),
    params:
        script=script("table"),
        prefix=subpath(output.html, strip_suffix=".html"),
        setting="--setting {model} {benchmark}".format(**SETTING),
        protocol=lambda wildcards: protocol(
            MODELS if wildcards.table == "main" else [SETTING["model"]]
        ),
        labels=labels(),
        scale=SCALE,
        facts=as_json({"run": CONFIG.run}),
    message:
        "{wildcards.table} beside the published numbers"
    shell:
        "{params.script} --table {wildcards.table} --beside-paper {params.protocol:q}"
        " {params.setting}"
        " --metrics {input.metrics} --labels {params.labels:q} --scale {params.scale:q}"
        " --facts {params.facts:q}"
        " --output {params.prefix} > {log} 2>&1"


rule table_readouts:
    input:
        **SETTING_SOLVE,
        clean=of_clean("batch1/solve.parquet"),
        second=of_clean("batch2/solve.parquet"),
        ranks=in_setting("ranks.parquet"),
        code=sources("analysis", "metrics", "reporting", script="table_inline_numbers"),
    output:
        multiext("<reports>/tables/readouts", *DOCUMENT),
        html=report(
            "<reports>/tables/readouts.html",
            caption="../report/table_readouts.rst",
            category="Tables",
            subcategory="The paper's",
            labels={"table": "text", "shows": "the numbers of the text"},
        ),
    log:
        "<results>/logs/tables/readouts.log",
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=doubling(2000),
        runtime=doubling(10),
    params:
        script=script("table_inline_numbers"),
        prefix=subpath(output.html, strip_suffix=".html"),
        strategies=as_json(SETTING_SOLVE),
        metrics=as_json(BOOTSTRAP | {"bins": CONFIG.metrics.bins}),
        scale=SCALE,
        facts=as_json({"run": CONFIG.run}),
    message:
        "The numbers of the paper's text"
    shell:
        "{params.script} --clean {input.clean} --clean-batch2 {input.second}"
        " --strategies {params.strategies:q} --ranks {input.ranks} --metrics {params.metrics:q}"
        " --scale {params.scale:q} --facts {params.facts:q}"
        " --output {params.prefix} > {log} 2>&1"


rule table_agreement:
    input:
        samples=[path for paths in sampled_cells().values() for path in paths],
        questions=targets.questions(CONFIG, SETTING["benchmark"]),
        code=sources(
            "analysis", "data", "reporting", script="table_extraction_agreement"
        ),
    output:
        multiext("<reports>/tables/agreement", *DOCUMENT),
        html=report(
            "<reports>/tables/agreement.html",
            caption="../report/table_agreement.rst",
            category="Tables",
            subcategory="Beyond the paper",
            labels={"table": "agreement", "shows": "rules of answer extraction"},
        ),
    log:
        "<results>/logs/tables/agreement.log",
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=doubling(8000),
        runtime=doubling(30),
    params:
        script=script("table_extraction_agreement"),
        prefix=subpath(output.html, strip_suffix=".html"),
        samples=as_json(sampled_cells()),
        extraction=CONFIG.benchmarks[SETTING["benchmark"]].extraction,
        labels=labels(),
        scale=SCALE,
        facts=as_json({"run": CONFIG.run}),
    message:
        "The same responses under every rule of answer extraction"
    shell:
        "{params.script} --samples {params.samples:q} --questions {input.questions}"
        " --extraction {params.extraction:q} --labels {params.labels:q}"
        " --scale {params.scale:q} --facts {params.facts:q}"
        " --output {params.prefix} > {log} 2>&1"


rule table_cost:
    # The benchmarks are no inputs: one that is lost must not cost its job again.
    input:
        made=[made for _, _, _, made, _ in cost_jobs()],
        code=sources("analysis", "reporting", script="table_cost"),
    output:
        multiext("<reports>/tables/cost", *DOCUMENT),
        html=report(
            "<reports>/tables/cost.html",
            caption="../report/table_cost.rst",
            category="Tables",
            subcategory="Beyond the paper",
            labels={"table": "cost", "shows": "tokens and seconds of every job"},
        ),
    log:
        "<results>/logs/tables/cost.log",
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=doubling(8000),
        runtime=doubling(30),
    params:
        script=script("table_cost"),
        prefix=subpath(output.html, strip_suffix=".html"),
        jobs=lambda wildcards: as_json(cost_jobs()),
        shards=CONFIG.sampling.num_shards,
        labels=labels(),
        scale=SCALE,
        facts=as_json({"run": CONFIG.run}),
    message:
        "Tokens and seconds of every job on a device"
    shell:
        "{params.script} --jobs {params.jobs:q} --shards {params.shards} --labels {params.labels:q}"
        " --scale {params.scale:q} --facts {params.facts:q}"
        " --output {params.prefix} > {log} 2>&1"


rule check_memorisation:
    input:
        tables=[path for _, _, *paths in contaminated_models() for path in paths],
        code=sources("analysis", "metrics", "reporting", script="check_memorisation"),
    output:
        multiext("<reports>/checks/memorisation", *DOCUMENT),
        html=report(
            "<reports>/checks/memorisation.html",
            caption="../report/memorisation.rst",
            category="Checks",
            labels={
                "check": "memorisation",
                "shows": "leaked and unleaked, clean and contaminated",
            },
        ),
    log:
        "<results>/logs/checks/memorisation.log",
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=doubling(2000),
        runtime=doubling(10),
    params:
        script=script("check_memorisation"),
        prefix=subpath(output.html, strip_suffix=".html"),
        contaminated=" ".join(
            f"--contaminated {' '.join(one)}" for one in contaminated_models()
        ),
        bounds=as_json(
            BOOTSTRAP
            | {
                "min_leaked_solve_probability": CONFIG.memorisation.min_leaked_solve_probability,
                "min_rouge_l": CONFIG.memorisation.min_rouge_l,
            }
        ),
        labels=labels(),
        facts=as_json({"run": CONFIG.run}),
    message:
        "Did the contaminated models memorise?"
    shell:
        "{params.script} {params.contaminated} --bounds {params.bounds:q}"
        " --labels {params.labels:q} --facts {params.facts:q}"
        " --output {params.prefix} > {log} 2>&1"


rule write_provenance:
    input:
        responses=[path for paths in sampled_cells().values() for path in paths],
        readings=ALL_METRICS,
        code=sources("reporting", script="write_provenance"),
    output:
        "<reports>/checks/provenance.json",
        html=report(
            "<reports>/checks/provenance.html",
            caption="../report/provenance.rst",
            category="Checks",
            labels={
                "check": "provenance",
                "shows": "configuration, versions, commit",
            },
        ),
    log:
        "<results>/logs/checks/provenance.log",
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=doubling(2000),
        runtime=doubling(10),
    params:
        script=script("write_provenance"),
        prefix=subpath(output.html, strip_suffix=".html"),
        config=lambda wildcards: as_json(CONFIG.model_dump(by_alias=True)),
        scale=SCALE,
        facts=as_json({"run": CONFIG.run}),
    message:
        "What this run was made by"
    shell:
        "{params.script} --responses {input.responses} --readings {input.readings}"
        " --config {params.config:q} --scale {params.scale:q} --facts {params.facts:q}"
        " --output {params.prefix} > {log} 2>&1"


rule check_claims:
    input:
        metrics=ALL_METRICS,
        readouts="<reports>/tables/readouts.csv",
        memorisation="<reports>/checks/memorisation.csv",
        code=sources("reporting", script="check_claims"),
    output:
        multiext("<reports>/claims", ".md", ".csv"),
        html=report(
            "<reports>/claims.html",
            caption="../report/claims.rst",
            category="Claims",
            labels={
                "sheet": "claims",
                "shows": "supported, not supported, cannot tell",
            },
        ),
    log:
        "<results>/logs/claims.log",
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=doubling(2000),
        runtime=doubling(10),
    params:
        script=script("check_claims"),
        prefix=subpath(output.html, strip_suffix=".html"),
        setting="--setting {model} {benchmark}".format(**SETTING),
        labels=labels(),
        scale=SCALE,
        facts=as_json({"run": CONFIG.run}),
    message:
        "Which of the paper's claims this run supports"
    shell:
        "{params.script} --metrics {input.metrics} {params.setting} --readouts {input.readouts}"
        " --memorisation {input.memorisation} --labels {params.labels:q}"
        " --scale {params.scale:q} --facts {params.facts:q}"
        " --output {params.prefix} > {log} 2>&1"


rule figure_mechanism:
    input:
        overlap=in_setting("overlap.parquet"),
        ranks=in_setting("ranks.parquet"),
        code=sources("metrics", "reporting", script="figure_mechanism"),
    output:
        multiext("<reports>/figures/mechanism", ".pdf", ".svg"),
        png=report(
            "<reports>/figures/mechanism.png",
            caption="../report/figure_mechanism.rst",
            category="Figures",
            labels={"figure": "1", "shows": "overlap and ranks"},
        ),
    log:
        "<results>/logs/figures/mechanism.log",
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=doubling(2000),
        runtime=doubling(10),
    params:
        script=script("figure_mechanism"),
        prefix=subpath(output.png, strip_suffix=".png"),
        title=SETTING_TITLE,
    message:
        "Figure 1: how the contaminated model generates"
    shell:
        "{params.script} --overlap {input.overlap} --ranks {input.ranks}"
        " --title {params.title:q} --output {params.prefix} > {log} 2>&1"


rule figure_readout:
    input:
        first=of_clean("batch1/solve.parquet"),
        second=of_clean("batch2/solve.parquet"),
        code=sources("metrics", "reporting", script="figure_readout_variance"),
    output:
        multiext("<reports>/figures/readout", ".pdf", ".svg"),
        png=report(
            "<reports>/figures/readout.png",
            caption="../report/figure_readout.rst",
            category="Figures",
            labels={"figure": "2", "shows": "0/1 readout and solve probability"},
        ),
    log:
        "<results>/logs/figures/readout.log",
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=doubling(2000),
        runtime=doubling(10),
    params:
        script=script("figure_readout_variance"),
        prefix=subpath(output.png, strip_suffix=".png"),
        title=SETTING_TITLE,
    message:
        "Figure 2: two batches of the clean model"
    shell:
        "{params.script} --batch1 {input.first} --batch2 {input.second} --title {params.title:q}"
        " --output {params.prefix} > {log} 2>&1"


rule figure_strata:
    input:
        **SETTING_SOLVE,
        clean=of_clean("batch1/solve.parquet"),
        code=sources("metrics", "reporting", script="figure_setting"),
    output:
        multiext("<reports>/figures/strata", ".pdf", ".svg"),
        png=report(
            "<reports>/figures/strata.png",
            caption="../report/figure_strata.rst",
            category="Figures",
            labels={
                "figure": "strata",
                "shows": "gaps by the clean solve probability",
            },
        ),
    log:
        "<results>/logs/figures/strata.log",
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=doubling(2000),
        runtime=doubling(10),
    params:
        script=script("figure_setting"),
        prefix=subpath(output.png, strip_suffix=".png"),
        arguments="--figure strata",
        strategies=as_json(without_ablation(SETTING_SOLVE)),
        bins=CONFIG.metrics.bins,
        seed=CONFIG.seed,
        labels=labels(),
        title=SETTING_TITLE,
    message:
        "The gap of every stratum under every strategy"
    shell:
        "{params.script} {params.arguments} --clean {input.clean}"
        " --strategies {params.strategies:q} --bins {params.bins} --seed {params.seed}"
        " --labels {params.labels:q} --title {params.title:q}"
        " --output {params.prefix} > {log} 2>&1"


use rule figure_strata as figure_sensitivity with:
    output:
        multiext("<reports>/figures/sensitivity", ".pdf", ".svg"),
        png=report(
            "<reports>/figures/sensitivity.png",
            caption="../report/figure_sensitivity.rst",
            category="Figures",
            labels={
                "figure": "sensitivity",
                "shows": "SA-PPG against B and against m",
            },
        ),
    log:
        "<results>/logs/figures/sensitivity.log",
    params:
        script=script("figure_setting"),
        prefix=subpath(output.png, strip_suffix=".png"),
        arguments="--figure sensitivity",
        strategies=as_json(without_ablation(SETTING_SOLVE)),
        bins=CONFIG.metrics.bins,
        seed=CONFIG.seed,
        labels=labels(),
        title=SETTING_TITLE,
    message:
        "SA-PPG of every strategy against B and against m"


use rule figure_strata as figure_scatter with:
    output:
        multiext("<reports>/figures/scatter", ".pdf", ".svg"),
        png=report(
            "<reports>/figures/scatter.png",
            caption="../report/figure_scatter.rst",
            category="Figures",
            labels={
                "figure": "scatter",
                "shows": "every question, clean against strategy",
            },
        ),
    log:
        "<results>/logs/figures/scatter.log",
    params:
        script=script("figure_setting"),
        prefix=subpath(output.png, strip_suffix=".png"),
        arguments="--figure scatter",
        strategies=as_json(without_ablation(SETTING_SOLVE, "all_zero")),
        bins=CONFIG.metrics.bins,
        seed=CONFIG.seed,
        labels=labels(),
        title=SETTING_TITLE,
    message:
        "Every question's solve probability under every strategy"


rule figure_subsets:
    input:
        metrics=in_setting("metrics.parquet"),
        code=sources("metrics", "reporting", script="figure_subsets"),
    output:
        multiext("<reports>/figures/subsets", ".pdf", ".svg"),
        png=report(
            "<reports>/figures/subsets.png",
            caption="../report/figure_subsets.rst",
            category="Figures",
            labels={"figure": "subsets", "shows": "leaked and unleaked apart"},
        ),
    log:
        "<results>/logs/figures/subsets.log",
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=doubling(2000),
        runtime=doubling(10),
    params:
        script=script("figure_subsets"),
        prefix=subpath(output.png, strip_suffix=".png"),
        strategies=["clean", "clean_batch2", *without_ablation(SETTING_SOLVE)],
        labels=labels(),
        title=SETTING_TITLE,
    message:
        "Every metric on leaked and on unleaked questions"
    shell:
        "{params.script} --metrics {input.metrics} --strategies {params.strategies}"
        " --labels {params.labels:q} --title {params.title:q}"
        " --output {params.prefix} > {log} 2>&1"


rule figure_loss:
    input:
        losses=collect(
            "<results>/{model}/{variant}/loss.tsv",
            model=MODELS,
            variant=CONFIG.variants,
        ),
        code=sources("metrics", "reporting", script="figure_loss"),
    output:
        multiext("<reports>/figures/loss", ".pdf", ".svg"),
        png=report(
            "<reports>/figures/loss.png",
            caption="../report/figure_loss.rst",
            category="Figures",
            labels={"figure": "loss", "shows": "training loss"},
        ),
    log:
        "<results>/logs/figures/loss.log",
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=doubling(2000),
        runtime=doubling(10),
    params:
        script=script("figure_loss"),
        prefix=subpath(output.png, strip_suffix=".png"),
        labels=labels(),
    message:
        "Training loss of every model"
    shell:
        "{params.script} --losses {input.losses} --labels {params.labels:q}"
        " --output {params.prefix} > {log} 2>&1"


rule tables:
    input:
        rules.table_main.output,
        rules.table_reversal.output,
        rules.table_decomposition.output,
        rules.table_ablation.output,
        rules.table_intervals.output,
        rules.table_subsets.output,
        rules.table_noise_floor.output,
        rules.table_readouts.output,
        rules.table_agreement.output,
        rules.table_cost.output,
        collect(
            rules.table_beside_paper.output,
            table=["main", "reversal", "decomposition", "ablation"],
        ),


rule figures:
    input:
        rules.figure_mechanism.output,
        rules.figure_readout.output,
        rules.figure_scatter.output,
        rules.figure_subsets.output,
        rules.figure_strata.output,
        rules.figure_sensitivity.output,
        rules.figure_loss.output,
