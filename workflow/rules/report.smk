"""Tables and figures, the claims sheet and the provenance."""

from zerogap.pipeline.report import sources
from zerogap.pipeline.report.figures import FIGURES, FIRST_PAGE
from zerogap.pipeline.report.protocol import scale_sentence
from zerogap.pipeline.report.tables import TABLES

SCALE = scale_sentence(CONFIG)
ASSETS = sorted(
    str(path.relative_to(workflow.basedir))
    for path in PACKAGE.joinpath("zerogap/reporting/assets").iterdir()
)


rule make_table:
    """Make one table in all formats."""
    input:
        lambda wildcards: TABLES[wildcards.table].source.files(CONFIG),
        published="workflow/resources/published.csv",
        assets=ASSETS,
    output:
        multiext("<reports>/tables/{table}", ".csv", ".md", ".tex"),
        html=report(
            "<reports>/tables/{table}.html",
            caption="../report/caption.rst",
            category="3. Tables",  # the report sorts them by name
            subcategory=lambda wildcards: TABLES[wildcards.table].section,
            labels=lambda wildcards: {
                "table": TABLES[wildcards.table].number or wildcards.table,
                "shows": TABLES[wildcards.table].shows,
            },
        ),
    log:
        "<results>/logs/tables/{table}.log",
    wildcard_constraints:
        table="|".join(TABLES),
    localrule: True
    conda:
        "../../envs/zerogap.yaml"
    params:
        code=parameters.code("make_table"),
        prefix=subpath(output.html, strip_suffix=".html"),
        source=lambda wildcards: TABLES[wildcards.table].source.locate(CONFIG),
        caption=lambda wildcards: TABLES[wildcards.table].rst("Table"),
        scale_note=fixed(CONFIG.scale_note),
        scale=fixed(SCALE),
        metadata={"run": CONFIG.run},
    message:
        "Table {wildcards.table}"
    script:
        "../scripts/make_table.py"


rule make_figure:
    """Make one figure in all formats."""
    input:
        lambda wildcards: FIGURES[wildcards.figure].source.files(CONFIG),
    output:
        multiext("<reports>/figures/{figure}", ".pdf", ".svg"),
        png=report(
            "<reports>/figures/{figure}.png",
            caption="../report/caption.rst",
            category="4. Figures",
            subcategory=lambda wildcards: FIGURES[wildcards.figure].section,
            labels=lambda wildcards: {
                "figure": FIGURES[wildcards.figure].number or wildcards.figure,
                "shows": FIGURES[wildcards.figure].shows,
            },
        ),
    log:
        "<results>/logs/figures/{figure}.log",
    wildcard_constraints:
        figure="|".join(FIGURES),
    localrule: True
    conda:
        "../../envs/zerogap.yaml"
    params:
        code=parameters.code("make_figure"),
        prefix=subpath(output.png, strip_suffix=".png"),
        source=lambda wildcards: FIGURES[wildcards.figure].source.locate(CONFIG),
        caption=lambda wildcards: FIGURES[wildcards.figure].rst("Figure"),
    message:
        "Figure {wildcards.figure}"
    script:
        "../scripts/make_figure.py"


rule check_claims:
    """Target: which claims of the paper the run supports."""
    input:
        sources.RESULTS.files(CONFIG),
        assets=ASSETS,
    output:
        multiext("<reports>/claims", ".md", ".csv"),
        html=report(
            "<reports>/claims.html",
            caption="../report/claims.rst",
            category="2. Claims",
            labels={
                "sheet": "claims",
                "shows": "supported, not supported or cannot tell",
            },
        ),
    log:
        "<results>/logs/claims.log",
    localrule: True
    conda:
        "../../envs/zerogap.yaml"
    params:
        code=parameters.code("check_claims"),
        prefix=subpath(output.html, strip_suffix=".html"),
        source=fixed(sources.RESULTS.locate(CONFIG)),
        scale_note=fixed(CONFIG.scale_note),
        scale=fixed(SCALE),
        metadata={"run": CONFIG.run},
    message:
        "Check of the paper's claims"
    script:
        "../scripts/check_claims.py"


rule write_provenance:
    """Target: configuration, versions and commit of the run."""
    input:
        responses=sources.SAMPLES.files(CONFIG),
        metrics=sources.METRICS_AND_ABLATION.files(CONFIG),
        questions=collect(
            "<results>/data/{benchmark}/questions.parquet",
            benchmark=CONFIG.benchmarks,
        ),
        assets=ASSETS,
    output:
        "<reports>/checks/provenance.json",
        html=report(
            "<reports>/checks/provenance.html",
            caption="../report/provenance.rst",
            category="5. Checks",
            labels={
                "check": "provenance",
                "shows": "configuration, versions, commit",
            },
        ),
    log:
        "<results>/logs/checks/provenance.log",
    localrule: True
    conda:
        "../../envs/zerogap.yaml"
    params:
        code=parameters.code("write_provenance"),
        prefix=subpath(output.html, strip_suffix=".html"),
        config=fixed(CONFIG.model_dump(mode="json", by_alias=True)),
        scale=fixed(SCALE),
        metadata={"run": CONFIG.run},
        benchmarks=fixed([entry.label for entry in CONFIG.benchmarks.values()]),
    message:
        "Provenance of the run"
    script:
        "../scripts/write_provenance.py"


rule write_index:
    """Write the page with the outcome: Table 3, the verdicts, Figures 1 and 2."""
    input:
        TABLES["main"].source.files(CONFIG),
        responses=lambda wildcards: list(targets.code_of_responses(CONFIG)),
        claims="<reports>/claims.csv",
        figures=collect("<reports>/figures/{figure}.png", figure=FIRST_PAGE),
        assets=ASSETS,
    output:
        index=report(
            "<reports>/index.html",
            caption="../report/outcome.rst",
            category="1. Outcome",
            labels={"page": "outcome", "shows": "Table 3, verdicts, Figures 1 and 2"},
        ),
        fragment="<results>/outcome.html",
    log:
        "<results>/logs/index.log",
    localrule: True
    conda:
        "../../envs/zerogap.yaml"
    params:
        code=parameters.code("write_index"),
        code_of_responses=lambda wildcards: targets.code_of_responses(CONFIG),
        source=fixed(TABLES["main"].source.locate(CONFIG)),
        scale_note=fixed(CONFIG.scale_note),
        scale=fixed(SCALE),
        metadata={"run": CONFIG.run},
    message:
        "First page of the run"
    script:
        "../scripts/write_index.py"


# Targets: table_<name> and figure_<name> make one, tables and figures all of them.
for kind, make, entries in (
    ("table", rules.make_table, TABLES),
    ("figure", rules.make_figure, FIGURES),
):
    for name, entry in entries.items():

        rule:
            name:
                f"{kind}_{name}"
            input:
                collect(make.output, **{kind: name}),

        workflow.get_rule(f"{kind}_{name}").docstring = (
            f"Target: {kind} {entry.number or name}, {entry.shows}."
        )


rule tables:
    """Target: all tables."""
    input:
        collect(rules.make_table.output, table=TABLES),


rule figures:
    """Target: all figures."""
    input:
        collect(rules.make_figure.output, figure=FIGURES),
