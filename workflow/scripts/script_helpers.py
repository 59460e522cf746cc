"""Shared by the scripts: command line, log file, one-line errors."""

import argparse
import gc
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zerogap.errors import InputError

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def import_quickly() -> None:
    """Save a quarter of the time in which a job imports PyTorch and transformers.

    Called here, since scripts import this module first. The garbage collector, which finds nothing
    to free during imports, is off until `run`. scikit-learn, which transformers imports for
    assisted generation alone, is hidden. The imports of a job that decodes take about 9 s
    of processor time with both and 12 s without (few runs on two busy cores): 3 s per job.
    """
    gc.disable()
    sys.modules.setdefault("sklearn", None)  # type: ignore[arg-type]


import_quickly()


def parse_arguments(
    description: str | None,
    *paths: str,
    parameters: bool = True,
    optional: Sequence[str] = (),
    lists: Sequence[str] = (),
    numbers: Sequence[str] = (),
    sharded: bool = False,
    decodes: bool = False,
    argv: Sequence[str] | None = None,
) -> argparse.Namespace:
    """Parse the command line of a script: its values and the paths of its files.

    Args:
        description: the script's docstring.
        paths: names of required path options.
        parameters: whether the job has values.
        optional: names of path options that default to None.
        lists: names of options with any number of paths.
        numbers: names of required integer options.
        sharded: whether the script can work on a shard, `--shard K N`: every N-th item,
            starting from the K-th.
        decodes: whether it decodes with a batch size; it becomes a value of `sampling`.
        argv: the command line; by default that of the process.

    Returns:
        The options; `parameters` are the values that Snakemake recorded for the job.
    """
    parser = argparse.ArgumentParser(description=description)
    if parameters:
        parser.add_argument("--parameters", type=json.loads, required=True, help="values as JSON")
    for name in paths:
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in optional:
        parser.add_argument(f"--{name}", type=Path)
    for name in lists:
        parser.add_argument(f"--{name}", type=Path, nargs="*", default=[])
    for name in numbers:
        parser.add_argument(f"--{name}", type=int, required=True)
    if sharded:
        parser.add_argument("--shard", type=int, nargs=2, default=[0, 1], metavar=("K", "N"))
    if decodes:
        parser.add_argument("--batch-size", required=True, help="prompts per step, or auto")
    args = parser.parse_args(argv)
    if parameters:
        for name in ("code", "base_files"):  # Snakemake compares them
            args.parameters.pop(name, None)
    if sharded:
        args.shard = tuple(args.shard)
    if decodes:
        size = args.batch_size
        args.parameters["sampling"]["batch_size"] = int(size) if size.isdecimal() else size
    return args


def keywords(args: argparse.Namespace) -> dict[str, Any]:
    """Paths and values of a job as the arguments of the function that does it."""
    given = vars(args) | args.parameters
    del given["parameters"]
    given.pop("batch_size", None)  # one of the values of `sampling`
    return given


def run(main: Callable[[], None]) -> None:
    """Run the main function of a script; bad input ends it with a one-line error message."""
    gc.freeze()  # what was imported stays to the end, and is not searched again
    gc.enable()
    try:
        main()
    except InputError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted")


def run_job(main: Callable[["Snakemake"], None], job: "Snakemake") -> None:
    """Run the main function of a `script:` rule, with all its output in the rule's log file."""
    with Path(job.log[0]).open("w") as log:
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
    run(lambda: main(job))
