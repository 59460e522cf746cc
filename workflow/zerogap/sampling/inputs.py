"""What a sampling job reads before it loads a model: tokenizer, questions and their prompts."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pandas as pd
from transformers import AutoConfig, PreTrainedTokenizerBase

from zerogap.data.prompts import PromptTemplate
from zerogap.engine import loading
from zerogap.engine.decoder import Prompt, SamplingParams
from zerogap.io import parquet
from zerogap.io.digests import value_digest
from zerogap.sampling.responses import few_shot_prompts
from zerogap.strategies.base import Context


@dataclass(frozen=True)
class JobInputs:
    """The questions that a model is asked.

    Attributes:
        tokenizer: the model's tokenizer.
        questions: the `questions` table.
        prompts: one per question, in the same order.
    """

    tokenizer: PreTrainedTokenizerBase
    questions: pd.DataFrame
    prompts: list[Prompt]

    @classmethod
    def read(
        cls,
        model: Path,
        questions: Path,
        exemplars: Path | None,
        sampling: Mapping[str, Any],
        benchmark: Mapping[str, Any],
        *,
        only_leaked: bool = False,
    ) -> Self:
        """Read the inputs; the arguments are those of the jobs (:mod:`zerogap.sampling.jobs`).

        Without `exemplars` the questions are asked without any.

        Raises:
            InputError: a file is invalid, or a prompt exceeds the model's context.
        """
        tokenizer = loading.load_tokenizer(model)
        table = parquet.read(questions, "questions")
        if only_leaked:
            table = table[table.leaked].reset_index(drop=True)
        prompts = few_shot_prompts(
            table,
            json.loads(exemplars.read_text()) if exemplars else [],
            tokenizer,
            loading.context_length(AutoConfig.from_pretrained(model)),
            sampling["max_new_tokens"],
            PromptTemplate.of(benchmark["prompt"]),
        )
        return cls(tokenizer, table, prompts)

    def context(self, greedy: Path, base_model: Path | None, neurons: Path | None) -> Context:
        """Return what a strategy may know of the model."""
        table = parquet.read(greedy, "greedy").set_index("question_id")
        table = table.loc[self.questions.question_id]
        return Context(
            trajectories=[list(map(int, tokens)) for tokens in table.token_ids],
            entropies=[list(map(float, entropy)) for entropy in table.entropy],
            tokenizer=self.tokenizer,
            base_model=base_model,
            neurons=neurons,
        )

    def digest(self) -> str:
        """Return a digest of the prompts and gold answers: kept responses are graded."""
        graded = zip(self.prompts, self.questions.gold, strict=True)
        return value_digest([(each.question_id, each.token_ids, gold) for each, gold in graded])


def greedy_params(sampling: Mapping[str, Any], benchmark: Mapping[str, Any]) -> SamplingParams:
    """Return how greedy trajectories are decoded."""
    return SamplingParams(
        temperature=0,
        max_new_tokens=sampling["max_new_tokens"],
        stop=list(benchmark["stop"]),
        batch_size=sampling["batch_size"],
        batch_invariant=sampling["batch_invariant"],
    )
