"""Shared by the scripts: command line, log file, one-line errors."""

import argparse
import gc
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zerogap import gpus
from zerogap.errors import InputError

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake as Job
else:
    Job = object

Values = Mapping[str, Any]


def import_quickly() -> None:
    """Save a quarter of the time in which a job imports PyTorch and transformers, about 3 s.

    The garbage collector, which finds nothing to free during imports, is off until `run`.
    scikit-learn, which transformers imports for assisted generation alone, is hidden.
    """
    gc.disable()
    sys.modules.setdefault("sklearn", None)  # type: ignore[arg-type]


import_quickly()  # scripts import this module first


def run(
    function: Callable[..., None], argv: Sequence[str] | None = None, *, on_gpu: bool = False
) -> None:
    """Call a function as a script, with what a command line says for each of its parameters.

    By their annotations, its paths and lists of paths are options of their own, and so is a
    `shard`, every N-th item starting from the K-th. All others are values, in the JSON of
    `--parameters` that Snakemake recorded for the job and of `--unrecorded`. Bad input ends the
    script with a one-line error message.

    Args:
        function: what the script does.
        argv: the command line; by default that of the process.
        on_gpu: whether it uses a GPU, which is then locked (:mod:`zerogap.gpus`).
    """
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--parameters", type=json.loads, default={}, help="values as JSON")
    parser.add_argument("--unrecorded", type=json.loads, default={}, help="further values as JSON")
    for name, parameter in inspect.signature(function).parameters.items():
        option, is_required = f"--{name.replace('_', '-')}", parameter.default is parameter.empty
        if name == "shard":
            parser.add_argument(option, type=int, nargs=2, default=[0, 1], metavar=("K", "N"))
        elif parameter.annotation == Sequence[Path]:
            parser.add_argument(option, type=Path, nargs="*", default=[])
        elif parameter.annotation in (Path, Path | None):
            parser.add_argument(option, type=Path, required=is_required)
    paths = vars(parser.parse_args(argv))
    values = paths.pop("parameters")
    for name, value in paths.pop("unrecorded").items():
        values[name] = {**values[name], **value} if isinstance(value, dict) else value
    values.pop("base_files", None)  # Snakemake compares it, as it does the code
    if (code := values.pop("code", None)) and "metadata" in values:
        values["metadata"]["code_digest"] = code
    if "shard" in paths:
        paths["shard"] = tuple(paths["shard"])

    def call() -> None:
        if on_gpu:
            gpus.claim()
        function(**paths, **values)

    _end_in_one_line(call)


def run_job(main: Callable[[Job], None], job: Job) -> None:
    """Run the main function of a `script:` rule, with all its output in the rule's log file."""
    with Path(job.log[0]).open("w") as log:
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
    _end_in_one_line(lambda: main(job))


def _end_in_one_line(call: Callable[[], None]) -> None:
    gc.freeze()  # what was imported stays to the end, and is not searched again
    gc.enable()
    try:
        call()
    except InputError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted")
