"""All responses of an evaluation: greedy trajectories, then samples under every strategy.

The output folder has one Parquet file per step, so an interrupted evaluation resumes, and a
strategy or a clean model can be added later. `settings.json` there says what they were made with.
"""

import contextlib
import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from transformers import PreTrainedTokenizerBase

from zerogap.engine import loading, memory
from zerogap.errors import InputError
from zerogap.evaluation.model_run import ModelRun, Request
from zerogap.evaluation.strategies import CLEAN, CLEAN_BATCH2, IDENTITY, named_strategies
from zerogap.io import atomic, parquet
from zerogap.io.digests import file_digest, folder_digest
from zerogap.io.provenance import provenance
from zerogap.sampling.tables import solve_counts
from zerogap.strategies.base import Context, Intervention, prepared
from zerogap.strategies.filtering import filter_samples
from zerogap.strategies.identity import Identity

SETTINGS = "settings.json"
# The random streams of the workflow's clean cells, independent of the strategies' (paper, §3).
CLEAN_STREAMS = {CLEAN: "clean-batch1", CLEAN_BATCH2: "clean-batch2"}


class Collected(NamedTuple):
    """The responses of an evaluation: the `greedy` table, and strategy → `samples` table.

    Identity's samples are first; those of a filter are the responses that it keeps. `likelihoods`
    is the table of the gold solutions, None for `zerogap sample`. `files` also has the clean
    model's batches; `tokenizer` is the model's.
    """

    greedy: pd.DataFrame
    samples: dict[str, pd.DataFrame]
    likelihoods: pd.DataFrame | None
    tokenizer: PreTrainedTokenizerBase
    files: dict[str, Path]


class Sides(NamedTuple):
    """What a model answered: to the benchmark, and to its controls if there are any."""

    benchmark: Collected
    controls: Collected | None


def collect(request: Request) -> Collected:
    """Decode and sample what the output folder does not hold yet.

    Raises:
        InputError: the request is invalid, or the folder has responses made with other settings.
            All of this is found before the first step.
    """
    return _Plan(request, ModelRun(request, request.model)).carry_out()


def collect_sides(request: Request) -> list[Sides]:
    """Collect the model's responses, then each reference's; to the benchmark and to its controls.

    The controls' are in the folder `controls` of the output, the references' in `reference1`, ….

    Raises:
        InputError: as :func:`collect`, for each model; there are references but no controls, or a
            model is named twice.
    """
    if request.references and request.controls is None:
        raise InputError("--reference needs controls: raise --num-questions, or give --controls")
    alone = dataclasses.replace(
        request,
        strategies=[IDENTITY],
        clean=None,
        clean_batch2=False,
        base_model=None,
        neurons=None,
    )
    folders = {
        request.output / f"reference{number}": name
        for number, name in enumerate(request.references, start=1)
    }
    requests = [request] + [
        dataclasses.replace(alone, model=name, output=folder) for folder, name in folders.items()
    ]
    plans = []
    for each in requests:
        sides = [each]
        if request.controls:
            sides.append(
                dataclasses.replace(
                    each,
                    question_set=request.controls.questions,
                    clean=None,
                    clean_batch2=False,
                    output=each.output / "controls",
                )
            )
        plans.append([_Plan(side, ModelRun(side, side.model)) for side in sides])
    if len({sides[0].digest for sides in plans}) < len(plans):
        raise InputError(
            "--reference: is the model itself, or named twice; name other models that have not "
            "seen the benchmark"
        )
    collected = [[plan.carry_out(with_likelihoods=True) for plan in sides] for sides in plans]
    return [Sides(sides[0], sides[1] if len(sides) > 1 else None) for sides in collected]


class _Plan:
    """A request that is checked: what can be found before anything is decoded has been found."""

    def __init__(self, request: Request, run: ModelRun) -> None:
        if request.clean_batch2 and request.clean is None:
            raise InputError("--clean-batch2 needs --clean MODEL, the model to sample twice")
        self._request, self._run, self.digest = request, run, run.digest
        self._strategies = named_strategies(request.strategies, request.base_model, request.neurons)
        if request.base_model is not None:
            loading.check_folder(request.base_model, with_tokenizer=False)
        self._clean_run = ModelRun(request, request.clean) if request.clean else None
        self._settings = _compatible(request.output, _settings(request, run, self._clean_run))

    def carry_out(self, *, with_likelihoods: bool = False) -> Collected:
        """Decode and sample what is missing; free the models."""
        request, run, folder = self._request, self._run, self._request.output
        if not (folder / "greedy.parquet").exists():
            run.load()  # before the first file: a model that cannot be loaded leaves none
        with atomic.replacing(folder / SETTINGS) as temporary:
            temporary.write_text(json.dumps(self._settings, indent=1) + "\n")
        likelihoods = run.likelihoods(folder / "likelihoods.parquet") if with_likelihoods else None
        greedy = run.greedy(folder / "greedy.parquet")
        if request.neurons:
            parquet.check_place(request.neurons)
        context = run.inputs.context(greedy, request.base_model, request.neurons)
        files = {name: folder / f"{name}.parquet" for name in self._strategies}
        samples: dict[str, pd.DataFrame] = {}
        for name, strategy in self._strategies.items():
            intervention = prepared(strategy, context)
            if keep := intervention.filter_responses:
                samples[name] = filter_samples(samples[IDENTITY], greedy, keep)
                # A question may have no responses left, but it has a row.
                questions = request.question_set.questions.assign(leaked=False)
                source = parquet.provenance(files[IDENTITY])
                made_by = provenance(strategy=repr(strategy), source=source)
                counts = solve_counts(samples[name], questions)
                parquet.write(files[name], counts, "counts", made_by)
            else:
                samples[name] = run.responses(files[name], strategy, context, intervention)
                memory.release()  # a base model, whose captured steps refer to themselves
        tokenizer = run.inputs.tokenizer
        del self._run, run  # its weights, before another model's are loaded
        memory.release()
        if self._clean_run is not None:
            for name in (CLEAN, CLEAN_BATCH2)[: 1 + request.clean_batch2]:
                files[name] = folder / f"{name}.parquet"
                nothing = Context([], []), Intervention()
                self._clean_run.responses(
                    files[name], Identity(), *nothing, stream=CLEAN_STREAMS[name]
                )
            del self._clean_run
        return Collected(greedy, samples, likelihoods, tokenizer, files)


def _settings(request: Request, run: ModelRun, clean_run: ModelRun | None) -> dict[str, Any]:
    """What the files of a folder share, by option; the strategies may differ between calls."""
    settings: dict[str, Any] = {
        "model": f"{request.model} ({run.digest})",
        "benchmark": f"{request.question_set.name} ({run.inputs.digest()})",
        "num_samples": request.num_samples,
        "temperature": request.temperature,
        "max_new_tokens": request.max_new_tokens,
        "extraction": run.rule.name,
        "stop": request.question_set.stop,
        "dtype": run.dtype,
        "seed": request.seed,
    }
    if clean_run is not None:
        settings["clean"] = f"{request.clean} ({clean_run.digest})"
    if request.base_model is not None:
        settings["base_model"] = f"{request.base_model} ({folder_digest(request.base_model)})"
    if request.neurons is not None:
        settings["neurons"] = f"{request.neurons} ({file_digest(request.neurons)})"
    return settings


def _compatible(folder: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings together with those of the folder's files.

    Raises:
        InputError: its files were made with others, or the folder is not an evaluation's.
    """
    path = folder / SETTINGS
    previous: dict[str, Any] = {}
    if folder.is_dir() and any(not file.name.startswith(".") for file in folder.iterdir()):
        with contextlib.suppress(OSError, ValueError, RecursionError):
            previous = json.loads(path.read_text())
        if not isinstance(previous, dict) or not {"model", "benchmark", "seed"} <= set(previous):
            raise InputError(
                f"{folder}: has files, but no {SETTINGS} of an evaluation; choose another --output"
            )
    changed = [
        f"{key} was {previous[key]}, now {value}"
        for key, value in settings.items()
        if previous.get(key, value) != value
    ]
    if changed:
        raise InputError(
            f"{folder}: contains responses made with different settings ({'; '.join(changed)}); "
            "repeat that request, or choose another --output"
        )
    return {**previous, **settings}
