"""The whole run as one HTML document, and its graphs of rules and jobs: Snakemake's own work."""

import shlex


def itself():
    """The command that calls Snakemake again with this run's configuration.

    This run holds the directory's lock; the call within it only reads.
    """
    command = ["python", "-m", "snakemake", "--nolock"]
    command += ["--snakefile", os.path.relpath(workflow.main_snakefile)]
    if files := workflow.overwrite_configfiles:
        command += ["--configfile", *map(os.path.relpath, files)]
    if given := workflow.config_settings.config_args:
        command += ["--config", *given]
    return shlex.join(command)


rule report:
    input:
        rules.all.input,
        captions=sorted(
            str(path.relative_to(workflow.basedir))
            for path in PACKAGE.joinpath("report").glob("*.rst")
        ),
    output:
        html="<reports>/report.html",
        rules="<reports>/rulegraph.svg",
        jobs="<reports>/dag.svg",
    log:
        "<results>/logs/report.log",
    localrule: True
    resources:
        mem_mb=grown(2000),
        runtime=grown(10),
    params:
        itself=itself(),
        draw=script("draw_graph"),
    message:
        "The HTML report, the graph of rules and the graph of jobs"
    shell:
        "({params.itself} --report {output.html}"
        " && {params.itself} --forceall --rulegraph dot | {params.draw} {output.rules}"
        " && {params.itself} --forceall --dag dot | {params.draw} {output.jobs}) > {log} 2>&1"
