"""One model that answers a question set, step by step. Each step is a file, which is kept."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import torch
from tqdm import tqdm

from zerogap.data.extraction import OPENED_THINKING, THINKING, extraction_rule
from zerogap.engine.decoder import SamplingParams
from zerogap.errors import InputError
from zerogap.evaluation.model_folders import ChatTemplate, Model
from zerogap.evaluation.question_sets import QuestionSet
from zerogap.io import meaning, parquet
from zerogap.io.digests import value_digest
from zerogap.io.provenance import provenance
from zerogap.io.resume import Journal, resumable_parts
from zerogap.sampling.arguments import sampling_params
from zerogap.sampling.cell import EngineSampler, engine_identity, sample_questions
from zerogap.sampling.diagnostics import solution_tokens, token_log_probabilities
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
NOTHING_KNOWN, NOTHING_CHANGED = Context([], []), Intervention()


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is evaluated and how: the options of `zerogap evaluate`, described by its help.

    `question_set` is what is asked (see :func:`zerogap.evaluation.question_sets.load`), `controls`
    what it is compared with, and `references` are models that have not seen it. Identity is always
    among the strategies.
    """

    model: str
    question_set: QuestionSet
    output: Path
    num_samples: int
    temperature: float
    max_new_tokens: int
    dtype: str
    seed: int
    controls: QuestionSet | None = None
    references: Sequence[str] = ()
    strategies: Sequence[str] = ()
    clean: str | None = None
    clean_batch2: bool = False
    base_model: Path | None = None
    neurons: Path | None = None
    chat_template: ChatTemplate | None = None


class ModelRun:
    """A model that is asked a question set; its files, and interrupted steps, are in a folder.

    Raises:
        InputError: an option is out of its range, or a prompt and `max_new_tokens` exceed the
            model's context.
    """

    def __init__(self, request: Request, model: Model, asked: QuestionSet, folder: Path) -> None:
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
        self.model, self.asked, self._folder, rule = model, asked, folder, asked.rule
        if model.thinking and not rule.name.startswith((THINKING, OPENED_THINKING)):
            rule = extraction_rule(model.thinking + rule.name)
        self._chat_template = "apply" if request.chat_template == "apply" else "none"
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
        self.inputs = JobInputs(model.tokenizer, asked.questions, prompts, model.end_tokens, rule)

    def path(self, name: str) -> Path:
        """The file of a step."""
        return self._folder / f"{name}.parquet"

    def likelihoods(self) -> pd.DataFrame:
        """Return the `likelihoods` table of the gold solutions; compute what is not there yet.

        The list is empty without a rationale, and where the solution exceeds the context.
        Responses come later: a decoder gives the model its own attention.
        """
        code = meaning.digest("zerogap.sampling.diagnostics")
        made_from = value_digest([self.inputs.digest(), self._solutions, self.model.digest, code])
        name = "likelihoods"
        return self._step(name, name, made_from, NOTHING_KNOWN, self._log_probabilities)

    def _log_probabilities(self, journal: Journal) -> pd.DataFrame:
        prompts, tokenizer = self.inputs.prompts, self.inputs.tokenizer
        encoded = solution_tokens(tokenizer, self._solutions)
        weights, progress = self.model.weights, tqdm(prompts, "likelihoods", unit="question")
        for prompt, solution in zip(progress, encoded, strict=True):
            key, tokens = prompt.question_id, prompt.token_ids
            if journal.get(key) is None:
                fits = 0 < len(solution) <= self.model.context_length - len(tokens)
                journal.add(key, token_log_probabilities(weights, tokens, solution) if fits else [])
        rows = [(prompt.question_id, journal.get(prompt.question_id)) for prompt in prompts]
        return pd.DataFrame(rows, columns=parquet.CONTRACTS["likelihoods"].names)

    def greedy(self) -> pd.DataFrame:
        """Return the `greedy` table; decode what the file does not hold yet."""
        sampling = SamplingParams(
            temperature=0, max_new_tokens=self._sampling.max_new_tokens, stop=self._sampling.stop
        )
        return self._table("greedy", "greedy", sampling, NOTHING_KNOWN, NOTHING_CHANGED, {})

    def responses(
        self,
        name: str,
        strategy: Strategy,
        context: Context = NOTHING_KNOWN,
        intervention: Intervention = NOTHING_CHANGED,
        *,
        stream: str = "strategies",
    ) -> pd.DataFrame:
        """Return the `samples` table under a strategy; sample what the file does not hold yet.

        The intervention is what the strategy has prepared with the context.

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
            name, "samples", sampling, context, intervention, draws, strategy=repr(strategy)
        )

    def _table(
        self,
        name: str,
        contract: Literal["greedy", "samples"],
        sampling: SamplingParams,
        context: Context,
        intervention: Intervention,
        draws: Mapping[str, Any],
        **metadata: Any,
    ) -> pd.DataFrame:
        drawn = dataclasses.asdict(sampling)
        # What decides a finished file, up to rounding; any machine may read it.
        task = {**task_identity(self.inputs), "model": self.model.digest, "code": drawing_code()}
        made_from = value_digest({"sampling": drawn, **draws, **task})

        def sampled(journal: Journal) -> pd.DataFrame:
            with intervention.applied_to(self.model.decoder) as decoder:
                return sample_questions(
                    EngineSampler(decoder, self.inputs, sampling, intervention.edit_logits),
                    contract=contract,
                    journal=journal,
                    samples_per_chunk=SAMPLES_PER_CHUNK[contract],
                    label=name,
                )

        return self._step(name, contract, made_from, context, sampled, sampling=drawn, **metadata)

    def _step(
        self,
        name: str,
        contract: str,
        made_from: str,
        context: Context,
        make: Callable[[Journal], pd.DataFrame],
        **metadata: Any,
    ) -> pd.DataFrame:
        """The table of a file; if there is none, it is made, from the parts that are kept."""
        path, model = self.path(name), self.model
        if not path.exists():
            settings = job_settings(
                self.inputs,
                context,
                made_from=made_from,
                precision=model.precision,
                device="cuda" if torch.cuda.is_available() else "cpu",
            )
            with resumable_parts(path, settings) as journal:
                table = make(journal)
                made_by = provenance(
                    made_from=made_from,
                    model=model.name,
                    model_digest=model.digest,
                    benchmark=self.asked.name,
                    question_digest=self.asked.digest,
                    extraction=self.inputs.rule.name,
                    chat_template=self._chat_template,
                    **engine_identity(model.weights),
                    **metadata,
                )
                parquet.write(path, table, contract, made_by)
        if parquet.provenance(path).get("made_from") != made_from:
            raise InputError(
                f"{path}: was made by another version of zerogap, of the strategy or of the "
                "extraction rule, or from other files; choose another --output, or delete the file"
            )
        return parquet.read(path, contract)
