"""Checks for what would fail hours into a run: before every run, and on request."""

from zerogap.io import atomic


# A hook instead of a rule that others depend on: if its file were remade, Snakemake would rerun
# everything that depends on it, and with `ancient` it would not see what else has to be done.
onstart:
    started = {job.rule.name for job in workflow.dag.needrun_jobs()}
    # None for tables and figures of a run that has all its responses.
    is_finished = all(
        Path(job.output).exists() for job in targets.timed_jobs(CONFIG)
    )
    runs_long = started & {*jobs.TIME_LIMITS, "train_preparation"}
    checks = preflight() if runs_long or not is_finished else []
    folder = Path(CONFIG.results)
    if started & {*jobs.DECODING}:
        atomic.write_text(
            folder / jobs.ENGINE_RECORD, f"{CONFIG.decoding.engine}\n"
        )
    if checks:
        text = "".join(f"{check}\n" for check in checks)
        atomic.write_text(folder / "preflight.txt", text)
    if FORKS:
        start_forks()


if workflow.is_main_process and workflow.output_settings.dryrun:
    preflight(only_values=True)


rule check_preflight:
    """Target: the checks that precede every run."""
    log:
        "<results>/logs/check_preflight.log",
    localrule: True
    conda:
        "../../envs/zerogap.yaml"
    params:
        configfiles=fixed([str(path) for path in workflow.configfiles]),
        command_line=fixed(COMMAND_LINE),
        conda=CONDA,
        gpus_here=fixed(workflow.local_exec),
    message:
        "Checks for what would fail hours into the run"
    script:
        "../scripts/check_preflight.py"
