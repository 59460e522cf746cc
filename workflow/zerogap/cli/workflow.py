"""The commands that plan and run the workflow: `zerogap plan`, `rehearse` and `run`."""

import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated

import typer

from zerogap.cli import output
from zerogap.cli.options import Config, File, option
from zerogap.cli.output import Format
from zerogap.errors import InputError, needed_packages

NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?")
MIN_RATE = 0.001  # tokens per second
RATE = "Tokens per second of training, sampling, greedy, search or prefill on one device."
FROM_RUN = "Take the rates from a finished run, results/RUN, of the same models."


@needed_packages("data,workflow")
def plan(
    config: Config = None,
    rate: Annotated[list[str] | None, option("[MODEL.]KIND=TOKENS...", RATE)] = None,
    from_run: Annotated[File, option("FOLDER", FROM_RUN, "--from")] = None,
    gpu: Annotated[str, option("NAME", "GPU of the assumed rates.")] = "a100-80gb",
    output_format: Format = "table",
) -> None:
    """Estimate the jobs, tokens, GPU hours and disk space of a run before it starts.

    The table says of each row whether its rate is given, measured (--from) or assumed.
    """
    # Imported late: pandas takes half a second, which --help does not need.
    from zerogap import config as configuration
    from zerogap.pipeline import plan as planning
    from zerogap.pipeline.models import model_size

    if gpu not in planning.GPUS:
        raise InputError(f"--gpu must be one of {', '.join(planning.GPUS)} (got {gpu})")
    settings = configuration.load(config or [configuration.paper_config()])
    given = _rates(rate or [], settings.models, planning.ASSUMED_RATES)
    sizes = {model: model_size(settings, model) for model in settings.models}
    measured = planning.measured_rates(from_run, sizes) if from_run else {}
    jobs = planning.plan(settings, sizes, planning.Rates(given, measured, gpu))
    if output_format == "json":
        output.print_json({"run": settings.run, "jobs": output.records(jobs)})
    else:
        output.print_table(planning.plan_table(jobs, settings), output_format)


def _rates(
    arguments: Iterable[str], models: Collection[str], kinds: Collection[str]
) -> dict[str, float]:
    """KIND or MODEL.KIND → rate.

    Raises:
        InputError: no such kind or model, or a rate that is not a positive number.
    """
    rates = {}
    for argument in arguments:
        name, _, number = argument.partition("=")
        *model, kind = name.split(".")
        _check_models("--rate", model, models)
        if kind not in kinds:
            raise InputError(f"--rate {argument}: the kind must be one of {', '.join(kinds)}")
        rates[name] = float(number) if NUMBER.fullmatch(number) else 0.0
        if not MIN_RATE <= rates[name] < math.inf:
            raise InputError(f"--rate {argument}: must be a positive number, such as 3000")
    return rates


def _check_models(option_name: str, names: Iterable[str], models: Collection[str]) -> None:
    for name in names:
        if name not in models:
            known = ", ".join(models)
            raise InputError(
                f"{option_name}: '{name}' is not a model of the configuration ({known})"
            )


@needed_packages("evaluate,training,workflow")
def rehearse(
    config: Config = None,
    models: Annotated[
        list[str] | None, option("NAME...", "Models of the configuration; default: all.")
    ] = None,
) -> int:
    """Run the workflow up to the metrics on small copies of the models, in minutes.

    The copies have the real tokenizers and architectures and random weights (docs/reproduce.md).
    The results are in results/RUN_rehearsal.
    """
    from zerogap import config as configuration

    files = config or [configuration.paper_config()]
    settings = configuration.load(files)
    _check_models("--models", models or [], settings.models)
    if not Path("Snakefile").is_file():
        raise InputError("the folder has no Snakefile; run the command in a checkout")
    from zerogap.io.resume import exclusive
    from zerogap.pipeline import rehearse as rehearsal  # imported late: torch takes seconds

    results = Path("results", rehearsal.run_name(settings))
    chosen = models or list(settings.models)
    results.parent.mkdir(exist_ok=True)
    with exclusive(results, results.with_suffix(".lock")):
        shutil.rmtree(results, ignore_errors=True)
        overlay, targets = rehearsal.prepare(settings, chosen, results / "rehearsal")
        command = ["-m", "snakemake", "--cores", "all", "--configfile", *files, overlay]
        status = subprocess.run(  # noqa: S603
            [sys.executable, *map(str, command), "--quiet", "rules", "host", "--", *targets],
            check=False,
            close_fds=False,  # it has the lock too
        ).returncode
    print("the rehearsal failed" if status else "the rehearsal passed")
    return status


@needed_packages("evaluate,training,workflow")
def run(
    profile: Annotated[str, option("NAME", "A folder of profiles/: quick, smollm2, slurm, ...")],
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TARGET",
            show_default=False,
            help="What to make; default: all. What follows -- is passed on to Snakemake.",
        ),
    ] = None,
    overlays: Annotated[
        list[Path] | None,
        option(
            "FILE...",
            "Overlays on top of the profile's; targets come first.",
            "--with",
            exists=True,
        ),
    ] = None,
    dry_run: Annotated[bool, option("", "Only count the jobs.", "--dry-run", "-n")] = False,
) -> None:
    """Run the workflow under a profile, with overlays of your own.

    Prints the call of Snakemake and makes it, in the root of the checkout (docs/workflow.md).
    """
    from zerogap.config.files import checkout, read_mapping, read_overlays

    root = checkout()
    own = [os.path.relpath(path, root) for path in overlays or []]
    os.chdir(root)
    names = sorted(path.parent.name for path in Path().glob("profiles/*/config.yaml"))
    if profile not in names:
        raise InputError(f"--profile must be one of {', '.join(names)} (got {profile})")
    if any(word.startswith("--configfile") for word in targets or []):
        raise InputError("--configfile cannot be used here; pass overlays with --with")
    # Read before Snakemake does, which has no limits.
    values = [read_mapping(Path(path)) for path in own]
    words = targets or []
    is_changed = bool(own) or any(word.startswith(("--config", "-C")) for word in words)
    is_named = any("run" in each for each in values) or any(w.startswith("run=") for w in words)
    if is_changed and not is_named:
        print("note: `run` is not set; results replace those of the profile", file=sys.stderr)
    arguments = [*(targets or []), "--profile", f"profiles/{profile}"]
    arguments += ["--dry-run"] if dry_run else []
    if own:
        arguments += ["--configfile", *read_overlays(f"profiles/{profile}"), *own]
    print(shlex.join(["snakemake", *arguments]), file=sys.stderr, flush=True)
    # In place of this process, so that Ctrl-C and the exit status are Snakemake's.
    os.execv(sys.executable, [sys.executable, "-m", "snakemake", *arguments])  # noqa: S606
