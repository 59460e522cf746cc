"""All responses of an evaluation: greedy trajectories, then samples under every strategy.

The output folder has one Parquet file per step, so an interrupted evaluation resumes, and a
strategy or a clean model can be added later. `settings.json` there says what they were made with.
"""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from transformers import PreTrainedTokenizerBase

from zerogap.engine import loading, memory
from zerogap.errors import InputError
from zerogap.evaluation import model_folders
from zerogap.evaluation.model_run import ModelRun, Request
from zerogap.evaluation.strategies import CLEAN, CLEAN_BATCH2, IDENTITY, named_strategies
from zerogap.io import atomic, parquet
from zerogap.io.digests import file_digest, folder_digest, read_cache
from zerogap.io.provenance import provenance
from zerogap.sampling.tables import solve_counts
from zerogap.strategies.base import prepared
from zerogap.strategies.filtering import filter_samples
from zerogap.strategies.identity import Identity

SETTINGS = "settings.json"
# The random streams of the workflow's clean cells, independent of the strategies' (paper, §3).
CLEAN_STREAMS = {CLEAN: "clean-batch1", CLEAN_BATCH2: "clean-batch2"}


class Collected(NamedTuple):
    """A model's responses to one question set: the `greedy` table, and strategy → `samples` table.

    Identity's samples are first; those of a filter are the responses that it keeps. `likelihoods`
    is the table of the gold solutions, None for `zerogap sample`. `files` also has the clean
    model's batches; `tokenizer` is the model's.
    """

    questions: pd.DataFrame
    greedy: pd.DataFrame
    samples: dict[str, pd.DataFrame]
    likelihoods: pd.DataFrame | None
    tokenizer: PreTrainedTokenizerBase
    files: dict[str, Path]


def collect(request: Request, *, with_likelihoods: bool = True) -> list[list[Collected]]:
    """Collect the responses of the model, then of each reference: to benchmark and controls.

    Decodes and samples what the output folder does not hold yet. The controls' are in its folder
    `controls`, the references' in `reference1`, ….

    Raises:
        InputError: the request is invalid, a model is named twice, or the folder has responses
            made with other settings. All of this is found before the first step.
    """
    if request.references and request.controls is None:
        raise InputError("--reference needs controls: raise --num-questions, or give --controls")
    if request.clean_batch2 and request.clean is None:
        raise InputError("--clean-batch2 needs --clean MODEL, the model to sample twice")
    plans = [_Plan(request)]
    plain = dataclasses.replace(request, strategies=[], clean=None, base_model=None, neurons=None)
    for number, name in enumerate(request.references, start=1):
        folder = request.output / f"reference{number}"
        plans.append(_Plan(dataclasses.replace(plain, model=name, output=folder)))
    if len({plan.model.digest for plan in plans}) < len(plans):
        raise InputError(
            "--reference: is the model itself, or named twice; name other models that have not "
            "seen the benchmark"
        )
    return [plan.carry_out(with_likelihoods) for plan in plans]


class _Plan:
    """What a model is asked: what can be found before anything is decoded has been found."""

    def __init__(self, request: Request) -> None:
        self._request, folder = request, request.output
        self._strategies = named_strategies(request.strategies, request.base_model, request.neurons)
        if request.base_model is not None:
            loading.check_folder(request.base_model)
        if request.neurons is not None:
            parquet.check_place(request.neurons)
        self.model = model_folders.find(request.model, request.chat_template, request.dtype)
        for model in (request.model, request.clean, request.base_model, *request.references):
            if model and folder.resolve() == Path(model).resolve():
                raise InputError(f"--output: {folder} is the model's folder; name another one")
        self._runs = [ModelRun(request, self.model, request.question_set, folder)]
        if request.controls is not None:
            self._runs.append(ModelRun(request, self.model, request.controls, folder / "controls"))
        self._clean_run = None
        if request.clean is not None:
            clean = model_folders.find(request.clean, request.chat_template, request.dtype)
            if clean.digest == self.model.digest:
                raise InputError(
                    f"--clean: {request.clean} is the model itself; name a model that differs from "
                    "it in the contamination alone, or omit --clean"
                )
            self._clean_run = ModelRun(request, clean, request.question_set, folder)
        self._settings = self._shared_settings()
        _compatible(folder, self._settings)

    def _shared_settings(self) -> dict[str, Any]:
        """What the files of the output share, by option; the strategies may differ by call."""
        request = self._request
        settings = {"model": f"{request.model} ({self.model.digest})"}
        for option, run in zip(("benchmark", "controls"), self._runs, strict=False):
            settings[option] = f"{run.asked.name} ({run.inputs.digest()})"
        if self._clean_run is not None:
            clean = self._clean_run.model
            settings["clean"] = f"{clean.name} ({clean.digest})"
        if request.base_model is not None:
            settings["base_model"] = f"{request.base_model} ({folder_digest(request.base_model)})"
        if request.neurons is not None:
            settings["neurons"] = f"{request.neurons} ({file_digest(request.neurons)})"
        return {
            **settings,
            "chat_template": request.chat_template,
            "num_questions": len(request.question_set.questions),
            "num_samples": request.num_samples,
            "temperature": request.temperature,
            "max_new_tokens": request.max_new_tokens,
            "extraction": self._runs[0].inputs.rule.name,
            "stop": request.question_set.stop,
            "dtype": self.model.precision,
            "seed": request.seed,
        }

    def carry_out(self, with_likelihoods: bool) -> list[Collected]:
        """Decode and sample what is missing; free the models."""
        if not self._runs[0].path("greedy").exists():
            # Before the first file: a model that cannot be loaded leaves none.
            self.model.weights  # noqa: B018 (cached)
        # Again, since another command may have begun there while this one loaded its model.
        settings = _compatible(self._request.output, self._settings)
        atomic.write_text(self._request.output / SETTINGS, json.dumps(settings, indent=1) + "\n")
        likelihoods = [run.likelihoods() if with_likelihoods else None for run in self._runs]
        sides = [*map(self._collected, self._runs, likelihoods)]
        self.model.free()
        if run := self._clean_run:
            for name in CLEAN_STREAMS if self._request.clean_batch2 else [CLEAN]:
                run.responses(name, Identity(), stream=CLEAN_STREAMS[name])
                sides[0].files[name] = run.path(name)
            run.model.free()
        return sides

    def _collected(self, run: ModelRun, likelihoods: pd.DataFrame | None) -> Collected:
        """The responses to one question set."""
        request, greedy = self._request, run.greedy()
        context = run.inputs.context(greedy, request.base_model, request.neurons)
        files = {name: run.path(name) for name in self._strategies}
        samples: dict[str, pd.DataFrame] = {}
        for name, strategy in self._strategies.items():
            intervention = prepared(strategy, context)
            if keep := intervention.filter_responses:
                samples[name] = filter_samples(samples[IDENTITY], greedy, keep)
                # A question may have no responses left, but it has a row.
                counts = solve_counts(samples[name], run.asked.questions.assign(leaked=False))
                source = parquet.provenance(files[IDENTITY])
                made_by = provenance(strategy=repr(strategy), source=source)
                parquet.write(files[name], counts, "counts", made_by)
            else:
                samples[name] = run.responses(name, strategy, context, intervention)
                memory.release()  # a base model, whose captured steps refer to themselves
        questions, tokenizer = run.asked.questions, run.inputs.tokenizer
        return Collected(questions, greedy, samples, likelihoods, tokenizer, files)


def _compared(value: Any) -> Any:
    """Of a name with a digest, the digest: a folder can be named in several ways."""
    return value.rpartition(" (")[2] if isinstance(value, str) else value


def _compatible(folder: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings together with those of the folder's files.

    Raises:
        InputError: its files were made with others, or the folder is not an evaluation's.
    """
    previous: dict[str, Any] = {}
    if folder.is_dir() and any(not file.name.startswith(".") for file in folder.iterdir()):
        previous = read_cache(folder / SETTINGS)
        if not {"model", "benchmark", "seed"} <= set(previous):
            raise InputError(
                f"{folder}: has files, but no {SETTINGS} of an evaluation; choose another --output"
            )
    changed = [
        f"{key} was {previous[key]}, now {value}"
        for key, value in settings.items()
        if _compared(previous.get(key, value)) != _compared(value)
    ]
    if changed:
        raise InputError(
            f"{folder}: contains responses made with different settings ({'; '.join(changed)}); "
            "repeat that request, or choose another --output"
        )
    return {**previous, **settings}
