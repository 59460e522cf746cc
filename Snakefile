from snakemake.utils import min_version

min_version("9.20")


configfile: "config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/bases.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/decode.smk"
include: "workflow/rules/metrics.smk"
include: "workflow/rules/report.smk"


localrules:
    all,
    tables,
    figures,


rule all:
    default_target: True
    input:
        rules.tables.input,
        rules.figures.input,
        rules.claims.output,
        rules.memorisation.output,
        rules.provenance.output,


# It needs everything that stands above.
include: "workflow/rules/html_report.smk"
