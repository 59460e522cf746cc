"""One model that answers a question set, step by step. Each step is a file, which is kept."""

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import torch

from zerogap.engine import loading
from zerogap.engine.decoder import Decoder, SamplingParams
from zerogap.errors import InputError
from zerogap.evaluation.model_folders import ModelFolder
from zerogap.evaluation.question_sets import QuestionSet
from zerogap.io import parquet
from zerogap.io.digests import folder_digest, value_digest
from zerogap.io.provenance import provenance
from zerogap.io.resume import resumable_parts
from zerogap.precision import used_precision
from zerogap.sampling.cell import sample_questions
from zerogap.sampling.identity import (
    drawing_code,
    job_settings,
    strategy_identity,
    task_identity,
)
from zerogap.sampling.responses import JobInputs, few_shot_prompts
from zerogap.sampling.samplers import EngineSampler, engine_identity
from zerogap.strategies.base import Context, Intervention, Strategy

# Responses that an interruption costs at most. The workflow's jobs have larger chunks, which are
# faster; here somebody waits.
SAMPLES_PER_CHUNK = {"samples": 1_000, "greedy": 50}


class ModelRun:
    """A model, its questions, and how it is sampled.

    The weights are loaded when the first step that is not done needs them.

    Args:
        model: the model.
        question_set: what it is asked.
        sampling: how responses are drawn.
        dtype: "float32", "bfloat16", …
        as_chat: whether prompts are put into the chat template.

    Raises:
        InputError: a prompt and `max_new_tokens` exceed the model's context.
    """

    def __init__(
        self,
        model: ModelFolder,
        question_set: QuestionSet,
        sampling: SamplingParams,
        dtype: str,
        *,
        as_chat: bool,
    ) -> None:
        self.model, self.question_set = model, question_set
        self.dtype, self._sampling = dtype, sampling
        prompts = few_shot_prompts(
            question_set.questions,
            question_set.exemplars,
            model.tokenizer,
            model.context_length,
            sampling.max_new_tokens,
            question_set.template,
            as_chat=as_chat,
        )
        self.inputs = JobInputs(model.tokenizer, question_set.questions, prompts, model.end_tokens)

    @functools.cached_property
    def digest(self) -> str:
        """A digest of all files of the model."""
        return folder_digest(self.model.folder)

    def greedy(self, path: Path) -> pd.DataFrame:
        """Return the `greedy` table; decode what the file does not hold yet."""
        sampling = SamplingParams(
            temperature=0, max_new_tokens=self._sampling.max_new_tokens, stop=self._sampling.stop
        )
        return self._table(path, "greedy", sampling, Context([], []), Intervention(), {})

    def responses(
        self,
        path: Path,
        strategy: Strategy,
        context: Context,
        intervention: Intervention,
        *,
        stream: str = "strategies",
    ) -> pd.DataFrame:
        """Return the `samples` table under a strategy; sample what the file does not hold yet.

        Args:
            path: the file; its name is shown in front of the progress bar.
            strategy: a strategy that samples, such as Identity.
            context: what the strategy may know.
            intervention: what it prepared with that.
            stream: name of the random stream.

        Raises:
            InputError: the file holds responses under another strategy, of another version, or
                with marks of another extraction rule.
        """
        draws = {
            "strategy": strategy_identity(strategy),
            "greedy": value_digest([context.trajectories, context.entropies]),
        }
        sampling = dataclasses.replace(self._sampling, stream=stream)
        return self._table(
            path, "samples", sampling, context, intervention, draws, strategy=repr(strategy)
        )

    def _table(
        self,
        path: Path,
        contract: Literal["greedy", "samples"],
        sampling: SamplingParams,
        context: Context,
        intervention: Intervention,
        draws: Mapping[str, Any],
        **metadata: Any,
    ) -> pd.DataFrame:
        """Return the table of a file; sample what the file does not hold yet."""
        draws = {"sampling": dataclasses.asdict(sampling), **draws}
        if self._is_made(path, draws):
            return parquet.read(path, contract)
        decoder, rule = self._decoder, self.question_set.rule
        settings = job_settings(
            self.inputs,
            rule,
            context,
            **draws,
            model=self.digest,
            precision=used_precision(self.dtype),
            device="cuda" if torch.cuda.is_available() else "cpu",
        )
        with (
            resumable_parts(path, settings) as journal,
            intervention.applied_to(decoder) as changed,
        ):
            table = sample_questions(
                EngineSampler(
                    changed,
                    self.inputs.prompts,
                    self.inputs.tokenizer,
                    sampling,
                    intervention.edit_logits,
                ),
                list(self.question_set.questions.gold),
                rule,
                contract=contract,
                journal=journal,
                samples_per_chunk=SAMPLES_PER_CHUNK[contract],
                label=path.stem,
            )
            made_by = provenance(
                made_from=self._made_from(draws),
                model=self.model.name,
                model_digest=self.digest,
                benchmark=self.question_set.name,
                sampling=draws["sampling"],
                dtype=self.dtype,
                extraction=rule.name,
                **engine_identity(decoder.model),
                **metadata,
            )
            parquet.write(path, table, contract, made_by)
        return parquet.read(path, contract)

    def _is_made(self, path: Path, draws: Mapping[str, Any]) -> bool:
        """Whether the file exists.

        Raises:
            InputError: it does, and was made by other code or from something else.
        """
        if not path.exists():
            return False
        if parquet.provenance(path).get("made_from") != self._made_from(draws):
            raise InputError(
                f"{path}: was made by another version of zerogap, of the strategy or of the "
                "extraction rule, or from other files; choose another --output, or delete the file"
            )
        return True

    def load(self) -> None:
        """Load the weights, which the next step needs, or raise InputError."""
        self._decoder  # noqa: B018 (cached)

    @functools.cached_property
    def _decoder(self) -> Decoder:
        return loading.decoder(self.model.load(self.dtype))

    def _made_from(self, draws: Mapping[str, Any]) -> str:
        """A digest of what decides a finished file, up to rounding; any machine may read it."""
        task = task_identity(self.inputs, self.question_set.rule)
        return value_digest({**draws, **task, "model": self.digest, "code": drawing_code()})
