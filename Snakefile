from snakemake.utils import min_version

min_version("9.20")


configfile: "config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/preflight.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/bases.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/preparation.smk"
include: "workflow/rules/sample.smk"
include: "workflow/rules/metrics.smk"
include: "workflow/rules/report.smk"


rule all:
    """Target (default): everything except the report."""
    default_target: True
    input:
        rules.tables.input,
        rules.figures.input,
        rules.check_claims.output,
        rules.write_provenance.output,
        rules.write_index.output,


# After `all`, whose inputs it needs.
include: "workflow/rules/html_report.smk"
# After all rules.
include: "workflow/rules/terminal.smk"
