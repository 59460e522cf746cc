"""Checks for what would fail hours into a run: before every run, and on request."""

import importlib.util


def check_before_start():
    """Stop before any job starts if something would fail hours later."""
    if importlib.util.find_spec("llamafactory") is None:
        print(
            "preflight: the jobs' packages are not in this environment, so nothing is checked; with "
            "--sdm conda, `snakemake check_preflight` runs all checks in theirs",
            file=sys.stderr,
        )
        return
    try:
        # Imported here, because a dry run does not need it.
        from zerogap.pipeline.preflight import run_checks

        results = run_checks(CONFIG)
    except InputError as error:
        sys.exit(f"error: {error}")
    if results:
        path = Path(targets.results(CONFIG), "preflight.txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{result}\n" for result in results))


# A hook instead of a rule that others depend on: if its file were remade, Snakemake would rerun
# everything that depends on it, and with `ancient` it would not see what else has to be done.
onstart:
    check_before_start()


rule check_preflight:
    """Target: the checks that precede every run."""
    log:
        "<results>/logs/check_preflight.log",
    localrule: True
    conda:
        "../../envs/zerogap.yaml"
    resources:
        mem_mb=doubling(2000),
        runtime=minutes(10),
    params:
        configfiles=workflow.configfiles,
        command_line=COMMAND_LINE,
    message:
        "Checks for what would fail hours into the run"
    script:
        "../scripts/check_preflight.py"
