"""The command `zerogap plan`."""

import math
from pathlib import Path
from typing import Annotated

import typer

from zerogap.cli.output import Format
from zerogap.errors import InputError

ROOT = Path(__file__).parents[3]  # of the checkout
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
CharactersPerToken = Annotated[
    float,
    typer.Option(
        metavar="NUMBER",
        help="Used while a model's tokenizer is not here yet; the default is GSM8K's under "
        "Llama-2's.",
    ),
]


def plan(
    config: Config = None,
    training: Training = None,
    sampling: Sampling = None,
    greedy: Greedy = None,
    prefill: Prefill = None,
    characters_per_token: CharactersPerToken = 3.0,
    output_format: Format = "table",
) -> None:
    """Estimate the jobs, tokens, GPU hours and disk space of a run before it starts.

    Rates are tokens per second on one device, for a 7B model or, as MODEL=RATE, for one model; the
    defaults are estimates (docs/planning.md).
    """
    given = {
        "training": _rates("--training", training),
        "sampling": _rates("--sampling", sampling),
        "greedy": _rates("--greedy", greedy),
        "prefill": _rates("--prefill", prefill),
    }
    _check_positive("--characters-per-token", characters_per_token, str(characters_per_token))
    # Imported late: pandas takes half a second, which --help does not need.
    from zerogap import config as configuration
    from zerogap.cli import output
    from zerogap.pipeline import planning
    from zerogap.pipeline.model_sizes import model_size
    from zerogap.pipeline.plan_table import plan_table

    settings = configuration.load(config or [ROOT / "config.yaml"])
    for kind, by_model in given.items():
        for model in by_model:
            if model and model not in settings.models:
                raise InputError(
                    f"--{kind}: '{model}' is not a model of the configuration "
                    f"({', '.join(settings.models)})"
                )
    rates = planning.Rates(**given)
    sizes = {model: model_size(settings, model) for model in settings.models}
    stages = planning.plan(settings, sizes, rates, characters_per_token)
    if output_format == "json":
        output.print_json({"run": settings.run, "stages": stages.to_dict("records")})
    else:
        output.print_table(plan_table(stages, settings, sizes, rates), output_format)


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
