"""One model that answers a question set, step by step. Each step is a file, which is kept."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import torch
from tqdm import tqdm
from transformers import PreTrainedModel

from zerogap.data.extraction import OPENED_THINKING, THINKING, extraction_rule
from zerogap.engine import loading
from zerogap.engine.decoder import Decoder, Prompt, SamplingParams
from zerogap.errors import InputError
from zerogap.evaluation import model_folders
from zerogap.evaluation.controls import Controls
from zerogap.evaluation.model_folders import ChatTemplate, ModelFolder
from zerogap.evaluation.question_sets import QuestionSet
from zerogap.io import parquet
from zerogap.io.digests import folder_digest, value_digest
from zerogap.io.provenance import provenance
from zerogap.io.resume import resumable_parts
from zerogap.precision import used_precision
from zerogap.sampling.arguments import sampling_params
from zerogap.sampling.cell import EngineSampler, engine_identity, sample_questions
from zerogap.sampling.diagnostics import token_log_probabilities
from zerogap.sampling.identity import (
    drawing_code,
    job_settings,
    strategy_identity,
    task_identity,
)
from zerogap.sampling.responses import JobInputs, few_shot_prompts
from zerogap.strategies.base import Context, Intervention, Strategy

# Responses that an interruption costs at most. The workflow's jobs have larger chunks, which are
# faster; here somebody waits.
SAMPLES_PER_CHUNK = {"samples": 1_000, "greedy": 50}


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is evaluated and how: the options of `zerogap evaluate`, described by its help.

    `question_set` is what is asked (see :func:`zerogap.evaluation.question_sets.load`), `controls`
    what it is compared with, and `references` are models that have not seen it.
    """

    model: str
    question_set: QuestionSet
    controls: Controls | None
    references: Sequence[str]
    strategies: Sequence[str]
    output: Path
    num_samples: int
    clean: str | None
    clean_batch2: bool
    base_model: Path | None
    neurons: Path | None
    chat_template: ChatTemplate | None
    temperature: float
    max_new_tokens: int
    dtype: str
    seed: int


class ModelRun:
    """A model that is sampled as requested; its weights are loaded when a step needs them.

    Args:
        request: what it is asked and how.
        name: the model, a folder or a name on the hub.

    Raises:
        InputError: an option is out of its range, the model cannot be used
            (:func:`zerogap.evaluation.model_folders.find`), or a prompt and `max_new_tokens`
            exceed its context.
    """

    def __init__(self, request: Request, name: str) -> None:
        asked = request.question_set
        if request.temperature == 0:
            raise InputError(
                "--temperature must be above 0; at 0 every sample is the greedy response"
            )
        self._sampling = sampling_params(
            num_samples=request.num_samples,
            temperature=request.temperature,
            top_p=1.0,
            max_new_tokens=request.max_new_tokens,
            stop=asked.stop,
            seed=request.seed,
            batch_size="auto",
            batch_invariant=False,
        )
        self.dtype = request.dtype
        if self.dtype == "auto":
            self.dtype = "bfloat16" if torch.cuda.is_available() else "float32"
        self.model = model = model_folders.find(name, request.chat_template)
        self.rule, self._benchmark = asked.rule, asked.name
        if model.thinking and not asked.rule.name.startswith((THINKING, OPENED_THINKING)):
            self.rule = extraction_rule(model.thinking + asked.rule.name)
        prompts = few_shot_prompts(
            asked.questions,
            asked.exemplars,
            model.tokenizer,
            model.context_length,
            request.max_new_tokens,
            asked.template,
            as_chat=request.chat_template == "apply",
        )
        self._solutions = [
            asked.template.response(rationale, gold) if rationale else ""
            for rationale, gold in zip(asked.questions.rationale, asked.questions.gold, strict=True)
        ]
        self.inputs = JobInputs(
            model.tokenizer, asked.questions, prompts, model.end_tokens, self.rule
        )

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

    def likelihoods(self, path: Path) -> pd.DataFrame:
        """Return the `likelihoods` table of the gold solutions; compute what is not there yet.

        The list is empty without a rationale, and where the solution exceeds the context.
        Responses come later: a decoder gives the model its own attention.
        """
        made_from = value_digest([self.inputs.digest(), self._solutions, self.digest])
        if not path.exists():
            model, inputs = self._model, self.inputs
            encoded = inputs.tokenizer(self._solutions, add_special_tokens=False)["input_ids"]
            rows = [
                (prompt.question_id, _log_probabilities(model, prompt, tokens, self.model))
                for prompt, tokens in zip(
                    tqdm(inputs.prompts, path.stem, unit="question"), encoded, strict=True
                )
            ]
            table = pd.DataFrame(rows, columns=parquet.CONTRACTS["likelihoods"].names)
            made_by = {"made_from": made_from, "model": self.model.name, **engine_identity(model)}
            parquet.write(path, table, "likelihoods", provenance(**made_by))
        _check_made_from(path, made_from)
        return parquet.read(path, "likelihoods")

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
        draws = {"sampling": dataclasses.asdict(sampling), **draws}
        # What decides a finished file, up to rounding; any machine may read it.
        task = task_identity(self.inputs)
        made_from = value_digest({**draws, **task, "model": self.digest, "code": drawing_code()})
        if path.exists():
            _check_made_from(path, made_from)
            return parquet.read(path, contract)
        settings = job_settings(
            self.inputs,
            context,
            **draws,
            model=self.digest,
            precision=used_precision(self.dtype),
            device="cuda" if torch.cuda.is_available() else "cpu",
        )
        decoder = self._decoder
        with (
            resumable_parts(path, settings) as journal,
            intervention.applied_to(decoder) as changed,
        ):
            table = sample_questions(
                EngineSampler(changed, self.inputs, sampling, intervention.edit_logits),
                contract=contract,
                journal=journal,
                samples_per_chunk=SAMPLES_PER_CHUNK[contract],
                label=path.stem,
            )
            made_by = provenance(
                made_from=made_from,
                model=self.model.name,
                model_digest=self.digest,
                benchmark=self._benchmark,
                sampling=draws["sampling"],
                dtype=self.dtype,
                extraction=self.rule.name,
                **engine_identity(decoder.model),
                **metadata,
            )
            parquet.write(path, table, contract, made_by)
        return parquet.read(path, contract)

    def load(self) -> None:
        """Load the weights, which the next step needs, or raise InputError."""
        self._model  # noqa: B018 (cached)

    @functools.cached_property
    def _model(self) -> PreTrainedModel:
        return loading.load(self.model.folder, self.dtype)

    @functools.cached_property
    def _decoder(self) -> Decoder:
        return loading.decoder(self._model)


def _log_probabilities(
    model: PreTrainedModel, prompt: Prompt, solution: list[int], folder: ModelFolder
) -> list[float]:
    """Those of the solution's tokens; none if it is empty or exceeds the context."""
    fits = len(prompt.token_ids) + len(solution) <= folder.context_length
    return token_log_probabilities(model, prompt.token_ids, solution) if solution and fits else []


def _check_made_from(path: Path, made_from: str) -> None:
    if parquet.provenance(path).get("made_from") != made_from:
        raise InputError(
            f"{path}: was made by another version of zerogap, of the strategy or of the extraction "
            "rule, or from other files; choose another --output, or delete the file"
        )
