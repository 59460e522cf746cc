"""Tables and figures of the catalogue, the claims sheet and the checks."""

from zerogap.pipeline import report_sources
from zerogap.reporting.catalog import FIGURES, FIRST_PAGE_FIGURES, TABLES

SCALE = report_sources.scale_sentence(CONFIG)
METRICS = report_sources.source_files(CONFIG, "metrics_with_ablation")
LABELS = report_sources.source_value(CONFIG, "labels")
# What the scripts run and render with: an edit makes tables, figures and checks again.
REPORT_CODE = code(
    "analysis", "data", "metrics", "reporting", "published.py", "strategies/registry.py"
) + sorted(
    str(path.relative_to(workflow.basedir))
    for path in PACKAGE.joinpath("zerogap/reporting/assets").iterdir()
)
# Snakemake's report sorts categories by name.
OUTCOME, CLAIMS, TABLE, FIGURE, CHECKS = (
    "1. Outcome",
    "2. Claims",
    "3. Tables",
    "4. Figures",
    "5. Checks",
)


rule make_table:
    """Make one table in all formats."""
    input:
        lambda wildcards: report_sources.entry_files(CONFIG, TABLES[wildcards.table]),
        published="workflow/resources/published.csv",
        code=REPORT_CODE,
    output:
        multiext("<reports>/tables/{table}", ".csv", ".md", ".tex", ".json"),
        html=report(
            "<reports>/tables/{table}.html",
            caption="../report/caption.rst",
            category=TABLE,
            subcategory=lambda wildcards: TABLES[wildcards.table].numbered_section,
            labels=lambda wildcards: {
                "table": TABLES[wildcards.table].label,
                "shows": TABLES[wildcards.table].shows,
            },
        ),
    log:
        "<results>/logs/tables/{table}.log",
    wildcard_constraints:
        table="|".join(TABLES),
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: doubling(TABLES[wildcards.table].mem_mb)(
            wildcards, attempt
        ),
        runtime=minutes(30),
    params:
        prefix=subpath(output.html, strip_suffix=".html"),
        sources=lambda wildcards: report_sources.entry_values(
            CONFIG, TABLES[wildcards.table]
        ),
        caption=lambda wildcards: PACKAGE.joinpath(
            "report", TABLES[wildcards.table].caption
        ).read_text(),
        scale_note=CONFIG.scale_note,
        scale=SCALE,
        metadata={"run": CONFIG.run},
    message:
        "Table {wildcards.table}"
    script:
        "../scripts/make_table.py"


rule make_figure:
    """Make one figure in all formats."""
    input:
        lambda wildcards: report_sources.entry_files(CONFIG, FIGURES[wildcards.figure]),
        code=REPORT_CODE,
    output:
        multiext("<reports>/figures/{figure}", ".pdf", ".svg"),
        png=report(
            "<reports>/figures/{figure}.png",
            caption="../report/caption.rst",
            category=FIGURE,
            subcategory=lambda wildcards: FIGURES[wildcards.figure].numbered_section,
            labels=lambda wildcards: {
                "figure": FIGURES[wildcards.figure].label,
                "shows": FIGURES[wildcards.figure].shows,
            },
        ),
    log:
        "<results>/logs/figures/{figure}.log",
    wildcard_constraints:
        figure="|".join(FIGURES),
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: doubling(FIGURES[wildcards.figure].mem_mb)(
            wildcards, attempt
        ),
        runtime=minutes(10),
    params:
        prefix=subpath(output.png, strip_suffix=".png"),
        sources=lambda wildcards: report_sources.entry_values(
            CONFIG, FIGURES[wildcards.figure]
        ),
        caption=lambda wildcards: PACKAGE.joinpath(
            "report", FIGURES[wildcards.figure].caption
        ).read_text(),
    message:
        "Figure {wildcards.figure}"
    script:
        "../scripts/make_figure.py"


rule check_memorisation:
    """Target: whether the models memorised their leaked questions."""
    input:
        report_sources.source_files(CONFIG, "memorisation"),
        code=REPORT_CODE,
    output:
        multiext("<reports>/checks/memorisation", ".csv", ".md", ".tex", ".json"),
        html=report(
            "<reports>/checks/memorisation.html",
            caption="../report/memorisation.rst",
            category=CHECKS,
            labels={
                "check": "memorisation",
                "shows": "whether the models memorised the leaked questions",
            },
        ),
    log:
        "<results>/logs/checks/memorisation.log",
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=doubling(2000),
        runtime=minutes(10),
    params:
        prefix=subpath(output.html, strip_suffix=".html"),
        checks=report_sources.source_value(CONFIG, "memorisation"),
        labels=LABELS,
        scale_note=CONFIG.scale_note,
        scale=SCALE,
        metadata={"run": CONFIG.run},
    message:
        "Check of memorisation"
    script:
        "../scripts/check_memorisation.py"


rule check_claims:
    """Target: which claims of the paper the run supports."""
    input:
        metrics=METRICS,
        inline_numbers="<reports>/tables/inline_numbers.csv",
        memorisation="<reports>/checks/memorisation.csv",
        code=REPORT_CODE,
    output:
        multiext("<reports>/claims", ".md", ".csv"),
        html=report(
            "<reports>/claims.html",
            caption="../report/claims.rst",
            category=CLAIMS,
            labels={
                "sheet": "claims",
                "shows": "supported, not supported or cannot tell",
            },
        ),
    log:
        "<results>/logs/claims.log",
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=doubling(2000),
        runtime=minutes(10),
    params:
        prefix=subpath(output.html, strip_suffix=".html"),
        setting=report_sources.source_value(CONFIG, "primary_setting"),
        paraphrase_of=CONFIG.paraphrase_of,
        rail_n=jobs.rail_thresholds(CONFIG).get("railcap"),
        labels=LABELS,
        scale=f"{CONFIG.scale_note} {SCALE}".lstrip(),
        metadata={"run": CONFIG.run},
    message:
        "Check of the paper's claims"
    script:
        "../scripts/check_claims.py"


rule write_provenance:
    """Target: configuration, versions and commit of the run."""
    input:
        responses=report_sources.source_files(CONFIG, "samples"),
        metrics=METRICS,
        questions=collect(
            "<results>/data/{benchmark}/questions.parquet",
            benchmark=CONFIG.benchmarks,
        ),
        code=REPORT_CODE,
    output:
        "<reports>/checks/provenance.json",
        html=report(
            "<reports>/checks/provenance.html",
            caption="../report/provenance.rst",
            category=CHECKS,
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
        runtime=minutes(10),
    params:
        prefix=subpath(output.html, strip_suffix=".html"),
        config=CONFIG.model_dump(mode="json", by_alias=True),
        scale=SCALE,
        metadata={"run": CONFIG.run},
        benchmarks=[entry.label for entry in CONFIG.benchmarks.values()],
    message:
        "Provenance of the run"
    script:
        "../scripts/write_provenance.py"


rule write_index:
    """Write the page with the outcome: Table 3, the verdicts, Figures 1 and 2."""
    input:
        report_sources.entry_files(CONFIG, TABLES["main"]),
        claims="<reports>/claims.csv",
        figures=collect("<reports>/figures/{figure}.png", figure=FIRST_PAGE_FIGURES),
        code=REPORT_CODE,
    output:
        index=report(
            "<reports>/index.html",
            caption="../report/outcome.rst",
            category=OUTCOME,
            labels={"page": "outcome", "shows": "Table 3, verdicts, Figures 1 and 2"},
        ),
        fragment="<results>/outcome.html",
    log:
        "<results>/logs/index.log",
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=doubling(2000),
        runtime=minutes(10),
    params:
        sources=report_sources.entry_values(CONFIG, TABLES["main"]),
        scale_note=CONFIG.scale_note,
        scale=SCALE,
        metadata={"run": CONFIG.run},
    message:
        "First page of the run"
    script:
        "../scripts/write_index.py"


# No inputs and outputs: it takes what exists, starts no other job and never replaces a file above.
rule make_partial_report:
    """Target: tables and figures of an unfinished run; starts no other job."""
    log:
        "<results>/logs/make_partial_report.log",
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    resources:
        mem_mb=doubling(8000),
        runtime=minutes(60),
    params:
        folder=f"reports/{CONFIG.run}/partial",
        settings=report_sources.setting_files(CONFIG),
        setting=report_sources.source_value(CONFIG, "primary_setting"),
        options=CONFIG.metrics.model_dump() | {"seed": CONFIG.seed},
        sources=lambda wildcards: report_sources.all_values(
            CONFIG, [*TABLES.values(), *FIGURES.values()]
        ),
        table_files=lambda wildcards: report_sources.files_by_entry(CONFIG, TABLES),
        figure_files=lambda wildcards: report_sources.files_by_entry(CONFIG, FIGURES),
        scale_note=CONFIG.scale_note,
        scale=SCALE,
        metadata={"run": CONFIG.run},
    message:
        "Tables and figures of what exists, and a list of what is missing"
    script:
        "../scripts/make_partial_report.py"


# Targets: table_<name> and figure_<name> make one, tables and figures all of them.
for name in TABLES:

    rule:
        name:
            f"table_{name}"
        input:
            collect(rules.make_table.output, table=name),

    workflow.get_rule(f"table_{name}").docstring = (
        f"Target: table {TABLES[name].label}, {TABLES[name].shows}."
    )


for name in FIGURES:

    rule:
        name:
            f"figure_{name}"
        input:
            collect(rules.make_figure.output, figure=name),

    workflow.get_rule(f"figure_{name}").docstring = (
        f"Target: figure {FIGURES[name].label}, {FIGURES[name].shows}."
    )


rule tables:
    """Target: all tables."""
    input:
        collect(rules.make_table.output, table=TABLES),


rule figures:
    """Target: all figures."""
    input:
        collect(rules.make_figure.output, figure=FIGURES),
