"""The run as one HTML document, and the graphs of rules and jobs, all made by Snakemake itself."""

from zerogap.pipeline.commands import snakemake_command


rule write_report:
    """Target: the HTML report and the graphs of rules and jobs."""
    input:
        rules.all.input,
        captions=sorted(
            str(path.relative_to(workflow.basedir))
            for path in PACKAGE.joinpath("report").iterdir()
        ),
        stylesheet="workflow/report/report.css",
        draw="workflow/scripts/draw_graph.py",
    output:
        html="<reports>/report.html",
        rules="<reports>/rulegraph.svg",
        jobs="<reports>/dag.svg",
    log:
        "<results>/logs/report.log",
    localrule: True
    conda:
        "../../envs/report.yaml"
    resources:
        mem_mb=doubling(2000),
        runtime=minutes(10),
    params:
        snakemake=snakemake_command(
            workflow.main_snakefile,
            workflow.overwrite_configfiles,
            workflow.config_settings.config_args or [],
        ),
    message:
        "The HTML report, the graph of rules and the graph of jobs"
    shell:
        "({params.snakemake} --report {output.html:q} --report-stylesheet {input.stylesheet:q}"
        " && {params.snakemake} --forceall --rulegraph dot | python {input.draw:q} {output.rules:q}"
        " && {params.snakemake} --forceall --dag dot | python {input.draw:q} {output.jobs:q}) > {log:q} 2>&1"
