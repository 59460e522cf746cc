"""The command `zerogap plan`."""

import math
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated

import typer

from zerogap.cli.options import needed_packages
from zerogap.cli.output import Format
from zerogap.errors import InputError

RATE = "[MODEL=]RATE..."


Config = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE...", help="A config file and its overlays; default: the paper's."),
]
Training = Annotated[
    list[str] | None, typer.Option(metavar=RATE, help="LoRA training, prompts included.")
]
Sampling = Annotated[
    list[str] | None, typer.Option(metavar=RATE, help="Sampling, generated tokens.")
]
Greedy = Annotated[
    list[str] | None,
    typer.Option(metavar=RATE, help="One greedy response per question, generated tokens."),
]
Prefill = Annotated[
    list[str] | None,
    typer.Option(metavar=RATE, help="Prompts, and responses that are only scored."),
]
From = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="FOLDER",
        help="Take the rates from a finished run, results/RUN, of the same models.",
    ),
]
Compare = Annotated[
    bool,
    typer.Option("--compare", help="Compare the plan of the run given by --from with its timings."),
]
Gpu = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="GPU of the assumed rates and of the memory (docs/planning.md)."
    ),
]
CharactersPerToken = Annotated[
    float,
    typer.Option(
        metavar="NUMBER",
        help="Used while a model's tokenizer is not here yet; the default is GSM8K's under "
        "Llama-2's.",
    ),
]


@needed_packages("data,workflow")
def plan(
    config: Config = None,
    training: Training = None,
    sampling: Sampling = None,
    greedy: Greedy = None,
    prefill: Prefill = None,
    from_run: From = None,
    compare: Compare = False,
    gpu: Gpu = "a100-80gb",
    characters_per_token: CharactersPerToken = 3.0,
    output_format: Format = "table",
) -> None:
    """Estimate the jobs, tokens, GPU hours and disk space of a run before it starts.

    Rates are tokens per second on one device, for a 7B model or, as MODEL=RATE, for one model. The
    table says of each stage whether its rate is stated, measured (--from) or assumed
    (docs/planning.md).
    """
    stated = {
        "training": _rates("--training", training),
        "sampling": _rates("--sampling", sampling),
        "greedy": _rates("--greedy", greedy),
        "prefill": _rates("--prefill", prefill),
    }
    _check_positive("--characters-per-token", characters_per_token, str(characters_per_token))
    _check_run(from_run, compare)
    if compare and any(stated.values()):
        raise InputError("--compare predicts from the rates of the run; omit the stated rates")
    # Imported late: pandas takes half a second, which --help does not need.
    from zerogap import config as configuration
    from zerogap.cli import output
    from zerogap.pipeline import finished_run, planning
    from zerogap.pipeline.model_sizes import model_size
    from zerogap.pipeline.plan_table import comparison_table, plan_table
    from zerogap.pipeline.rates import GPUS, Rates

    if gpu not in GPUS:
        raise InputError(f"--gpu must be one of {', '.join(GPUS)} (got {gpu})")
    settings = configuration.load(config or [configuration.paper_config()])
    for kind, by_model in stated.items():
        check_models(f"--{kind}", filter(None, by_model), settings.models)
    sizes = {model: model_size(settings, model) for model in settings.models}
    texts = planning.texts_by_owner(settings, sizes, characters_per_token)
    speeds = {}
    if from_run is not None:
        measured = finished_run.measured_jobs(settings, from_run, sizes, texts)
        speeds = finished_run.speeds(measured)
        if compare:
            comparison = finished_run.comparison(settings, measured, sizes, texts)
            if output_format == "json":
                output.print_json({"run": settings.run, "jobs": output.records(comparison)})
            else:
                output.print_table(comparison_table(comparison, settings), output_format)
            return
    rates = Rates(**stated, speeds=speeds, gpu=GPUS[gpu])
    stages = planning.plan(settings, sizes, texts, rates)
    if output_format == "json":
        output.print_json({"run": settings.run, "stages": output.records(stages)})
    else:
        output.print_table(plan_table(stages, settings, sizes, rates, texts), output_format)


def _check_run(folder: Path | None, compare: bool) -> None:
    """Check that the finished run is there if it is given or needed.

    Raises:
        InputError: it is not.
    """
    if compare and folder is None:
        raise InputError("--compare needs --from results/RUN, the finished run")
    if folder is not None and not folder.is_dir():
        raise InputError(f"--from {folder}: no such folder; give results/RUN, a finished run")


def check_models(option: str, names: Iterable[str], models: Collection[str]) -> None:
    """Check that the models which an option names are models of the configuration.

    Raises:
        InputError: one of them is not.
    """
    for name in names:
        if name not in models:
            raise InputError(
                f"{option}: '{name}' is not a model of the configuration ({', '.join(models)})"
            )


def _rates(option: str, arguments: list[str] | None) -> dict[str, float]:
    """Model ("" for a 7B model) → rate, from RATE or MODEL=RATE.

    Raises:
        InputError: A rate is not a positive number.
    """
    rates = {}
    for argument in arguments or []:
        model, _, number = argument.rpartition("=")
        try:
            rate = float(number)
        except ValueError:
            rate = math.nan
        _check_positive(option, rate, number)
        rates[model] = rate
    return rates


def _check_positive(option: str, value: float, text: str) -> None:
    if not 0 < value < math.inf:
        raise InputError(f"{option} must be a positive number (got {text})")
