"""Checks for what would fail hours into a run: before every run, and on request."""

import importlib.util


# A hook instead of a rule that others depend on: if its file were remade, Snakemake would rerun
# everything that depends on it, and with `ancient` it would not see what else has to be done.
onstart:
    check_before_start()


def check_before_start():
    """Stop before any job starts if something would fail hours later."""
    if importlib.util.find_spec("llamafactory") is None:
        print(
            "preflight: the jobs' packages are not in this environment; with --sdm conda, "
            "`snakemake check_preflight` runs the checks in theirs",
            file=sys.stderr,
        )
        return
    from zerogap.pipeline import preflight  # imports that a dry run does not need

    try:
        results = preflight.run_checks(CONFIG)
    except InputError as error:
        sys.exit(f"error: {error}")
    if results:
        path = Path(targets.results(CONFIG), "preflight.txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{result}\n" for result in results))


rule check_preflight:
    log:
        "<results>/logs/check_preflight.log",
    localrule: True
    conda:
        "../../envs/train.yaml"
    resources:
        mem_mb=doubling(2000),
        runtime=doubling(10),
    message:
        "Checks for what would fail hours into the run"
    script:
        "../scripts/check_preflight.py"
