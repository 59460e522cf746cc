"""The run as one HTML document, made by Snakemake itself."""

from zerogap.pipeline.terminal import snakemake_command


rule write_report:
    """Target: the HTML report."""
    input:
        rules.all.input,
        captions=sorted(
            str(path.relative_to(workflow.basedir))
            for path in PACKAGE.joinpath("report").iterdir()
        ),
    output:
        "<reports>/report.html",
    log:
        "<results>/logs/report.log",
    localrule: True
    conda:
        "../../envs/zerogap.yaml"
    params:
        snakemake=fixed(
            snakemake_command(
                workflow.main_snakefile,
                workflow.overwrite_configfiles,
                workflow.config_settings.config_args or [],
            )
        ),
    message:
        "The HTML report"
    shell:
        "{params.snakemake} --report {output:q} --report-stylesheet workflow/report/report.css"
        " > {log:q} 2>&1"
