"""The command `zerogap rehearse`."""

from pathlib import Path
from typing import Annotated

import typer

from zerogap.cli.options import needed_packages
from zerogap.cli.plan import Config, check_models
from zerogap.errors import InputError

Models = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME...", help="Models of the configuration; default: all."),
]
RealWidth = Annotated[
    bool, typer.Option("--real-width", help="Reduce the number of layers only (more memory).")
]
RealWeights = Annotated[
    bool,
    typer.Option(
        "--real-weights", help="Use the models as they are; those on the hub are downloaded."
    ),
]


@needed_packages("evaluate,training,workflow")
def rehearse(
    config: Config = None,
    models: Models = None,
    real_width: RealWidth = False,
    real_weights: RealWeights = False,
) -> int:
    """Run every stage of a run on small copies of its models, in minutes.

    The copies have the real tokenizers and architectures, few layers and random weights. One line
    per stage; exit status 1 if one failed or every model was skipped (docs/planning.md).
    """
    if real_width and real_weights:
        raise InputError("--real-width and --real-weights cannot be combined; give one of them")
    from zerogap import config as configuration

    settings = configuration.load(config or [configuration.paper_config()])
    check_models("--models", models or [], settings.models)
    from zerogap.pipeline import rehearsal, targets  # imported late: torch takes seconds

    folder = Path(targets.rehearsal(settings))
    results = []
    for result in rehearsal.rehearse(
        settings, folder, models or [], real_width=real_width, real_weights=real_weights
    ):
        print(result, flush=True)
        results.append(result)
    failed = [result for result in results if result.status == rehearsal.FAILED]
    num_models = len({result.model for result in results})
    if all(result.status == rehearsal.SKIPPED for result in results):
        print(f"nothing was rehearsed: {num_models} of {num_models} models were skipped")
        return 1
    print(f"{len(failed)} of {num_models} models failed" if failed else "the rehearsal passed")
    return 1 if failed else 0
