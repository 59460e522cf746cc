"""The command `zerogap plan`."""

import math
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated

from zerogap.cli.options import Config, option
from zerogap.cli.output import Format
from zerogap.errors import InputError, needed_packages

NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?")
MIN_RATE = 0.001  # tokens per second


@needed_packages("data,workflow")
def plan(
    config: Config = None,
    rate: Annotated[
        list[str] | None,
        option(
            "[MODEL.]KIND=TOKENS...",
            "Tokens per second of training, sampling, greedy, search or prefill on one device.",
        ),
    ] = None,
    from_run: Annotated[
        Path | None,
        option(
            "FOLDER",
            "Take the rates from a finished run, results/RUN, of the same models.",
            "--from",
        ),
    ] = None,
    gpu: Annotated[str, option("NAME", "GPU of the assumed rates.")] = "a100-80gb",
    output_format: Format = "table",
) -> None:
    """Estimate the jobs, tokens, GPU hours and disk space of a run before it starts.

    The table says of each row whether its rate is given, measured (--from) or assumed.
    """
    # Imported late: pandas takes half a second, which --help does not need.
    from zerogap import config as configuration
    from zerogap.cli import output
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
        if model and model[0] not in models:
            known = ", ".join(models)
            raise InputError(f"--rate: '{model[0]}' is not a model of the configuration ({known})")
        if kind not in kinds:
            raise InputError(f"--rate {argument}: the kind must be one of {', '.join(kinds)}")
        rates[name] = float(number) if NUMBER.fullmatch(number) else 0.0
        if not MIN_RATE <= rates[name] < math.inf:
            raise InputError(f"--rate {argument}: must be a positive number, such as 3000")
    return rates
