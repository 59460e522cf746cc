"""The dress rehearsal: every stage of a run with each configured model, shrunk, in minutes.

The tokenizers, configurations and module trees are the real ones. Weights are random, unless the
real ones are asked for, and there is a handful of questions.
"""

import contextlib
import os
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from zerogap import gpus
from zerogap.config import Config
from zerogap.errors import InputError, first_line
from zerogap.pipeline import jobs
from zerogap.pipeline.preflight.result import FAILED, OK
from zerogap.pipeline.rehearsal import decoding, training
from zerogap.pipeline.rehearsal.model_copy import ModelCopy

_FIXES = {
    "tokenizer": "check that its folder or revision has all files of the tokenizer",
    "model": "use a decoder-only model of transformers (docs/extend.md)",
    "training": "check the section training, and that the packages are those of requirements.lock",
    "merge": "check that the packages are those of requirements.lock",
    "greedy": "check sampling.dtype and the benchmark's prompt",
}
_OTHER_FIX = "check that the packages are those of requirements.lock; open an issue with the log"


@dataclass(frozen=True)
class StageResult:
    """The result of one stage.

    Attributes:
        status: OK, SKIPPED or FAILED.
        model: a key of the configuration's models.
        stage: what was done.
        text: what came of it; for a failure, followed by how to fix it.
        seconds: how long it took.
    """

    status: str
    model: str
    stage: str
    text: str
    seconds: float = 0.0

    def __str__(self) -> str:
        name = f"{self.model}, {self.stage}"
        return f"{self.status:8} {name}: {self.text} ({self.seconds:.0f} s)"


def rehearse(
    config: Config,
    folder: Path,
    models: Sequence[str] = (),
    *,
    real_width: bool = False,
    real_weights: bool = False,
) -> Iterator[StageResult]:
    """Rehearse the run with each model, one result per stage.

    A failure ends the rehearsal of its model; the next one follows.

    Args:
        config: of the run.
        folder: for the files and logs, one folder per model; overwritten.
        models: keys of the configuration's models; all if empty.
        real_width: shrink the number of layers only.
        real_weights: use the models as they are.
    """
    gpus.claim()
    for model in models or config.models:
        copy = ModelCopy(config, model, folder / model, real_width, real_weights)
        shutil.rmtree(copy.folder, ignore_errors=True)
        copy.folder.mkdir(parents=True)
        for stage, function in _stages(copy):
            result = _run_stage(copy, stage, function)
            yield result
            if result.status == FAILED:
                break


def _run_stage(copy: ModelCopy, stage: str, function: Callable[[], str]) -> StageResult:
    """Run a stage with its output in the log."""
    start, log = time.monotonic(), copy.folder / "rehearsal.log"
    result = partial(StageResult, model=copy.model, stage=stage)
    offset = log.stat().st_size if log.exists() else 0
    with _output_in(log):
        print(f"== {stage}")
        try:
            text, status = function(), OK
        except InputError as error:
            traceback.print_exc()
            text, status = f"{first_line(error)} (log: {log})", FAILED
        except Exception as error:  # a library may fail in any way, which is what this is for
            traceback.print_exc()
            cause = f"{type(error).__name__}: {first_line(error)}"
            sys.stderr.flush()
            if isinstance(error, RuntimeError) and stage in ("training", "merge"):
                cause = _last_error(log, offset) or cause
            text, status = f"{cause}; {_FIXES.get(stage, _OTHER_FIX)} (log: {log})", FAILED
    return result(status=status, text=text, seconds=time.monotonic() - start)


def _last_error(log: Path, offset: int) -> str | None:
    """The error with which a command ended, from its output in the log."""
    text = log.read_bytes()[offset:].decode(errors="replace")
    before = text.partition("Traceback (most recent call last):\n")[2]
    errors = [
        line
        for line in before.splitlines()
        if line.partition(":")[0].endswith(("Error", "Exception")) and not line.startswith(" ")
    ]
    return errors[0] if errors else None


@contextlib.contextmanager
def _output_in(log: Path) -> Iterator[None]:
    """Append everything that this process and its children print to a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    with log.open("a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            with contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
                yield
        finally:
            file.flush()
            for number, descriptor in enumerate(saved, start=1):
                os.dup2(descriptor, number)
                os.close(descriptor)


def _stages(copy: ModelCopy) -> Iterator[tuple[str, Callable[[], str]]]:
    """The stages in order; a stage may need the files of those before."""
    yield "tokenizer", partial(training.read_tokenizer, copy)
    yield "model", partial(training.make_base, copy)
    yield "data", partial(training.write_data, copy)
    yield "training", partial(training.train, copy)
    yield "merge", partial(training.merge, copy)
    yield "decoder", partial(decoding.compare_decoders, copy)
    yield "greedy", partial(decoding.decode_greedy, copy)
    if any(entry.needs_base_model for entry in copy.config.all_strategies.values()):
        yield "neurons", partial(decoding.localise_neurons, copy)
    yield "clean samples", partial(decoding.sample_clean, copy)
    for name in jobs.sampled_strategies(copy.config):
        yield f"strategy {name}", partial(decoding.sample, copy, name)
    for name in jobs.filter_strategies(copy.config):
        yield f"strategy {name}", partial(decoding.filter_responses, copy, name)
    yield "metrics", partial(decoding.compute_metrics, copy)
