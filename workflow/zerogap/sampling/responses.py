"""From questions to prompts, and from generated tokens to scored responses."""

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import pandas as pd
from transformers import PreTrainedTokenizerBase

from zerogap.data.extraction import ExtractionRule, extraction_rule
from zerogap.data.plain_text import is_thinking_token
from zerogap.data.prompts import DEFAULT_TEMPLATE, PromptTemplate
from zerogap.engine import generation_config, loading
from zerogap.engine.decoder import Prompt, Response, SamplingParams
from zerogap.errors import InputError
from zerogap.families.structure import config_of
from zerogap.families.tokenizers import load_tokenizer
from zerogap.io import parquet
from zerogap.io.digests import value_digest
from zerogap.strategies.base import Context

# A chat template that prints today's date gets the same one on every day.
SAME_DAY = {"strftime_now": datetime.date(2026, 1, 1).strftime}


@dataclass(frozen=True)
class JobInputs:
    """What a model is asked, and how its responses are graded.

    Attributes:
        tokenizer: the model's tokenizer.
        questions: the `questions` table, or at least its columns `question_id` and `gold`; without
            a gold answer responses are not marked right or wrong.
        prompts: one per question, in the same order.
        end_tokens: ids of the tokens that end a response.
        rule: extracts a response's answer and compares it with the gold answer.
    """

    tokenizer: PreTrainedTokenizerBase
    questions: pd.DataFrame
    prompts: list[Prompt]
    end_tokens: list[int]
    rule: ExtractionRule

    @classmethod
    def read(
        cls,
        model: Path,
        questions: Path,
        exemplars: Path,
        sampling: Mapping[str, Any],
        benchmark: Mapping[str, Any],
    ) -> Self:
        """Read the inputs; arguments and errors are those of :mod:`zerogap.sampling.jobs`."""
        tokenizer = load_tokenizer(model)
        table = parquet.read_of_run(questions, "questions")
        prompts = few_shot_prompts(
            table,
            json.loads(exemplars.read_text("utf-8")),
            tokenizer,
            loading.context_length(config_of(model)),
            sampling["max_new_tokens"],
            PromptTemplate.of(benchmark["prompt"]),
        )
        config = generation_config.read(model)
        generation_config.note_ignored(config, model)
        end_tokens = generation_config.end_tokens(tokenizer, config)
        return cls(tokenizer, table, prompts, end_tokens, extraction_rule(benchmark["extraction"]))

    def only(self, questions: pd.DataFrame) -> Self:
        """The inputs for these rows of the table."""
        prompts = [self.prompts[index] for index in questions.index]
        return replace(self, questions=questions.reset_index(drop=True), prompts=prompts)

    def context(
        self, greedy: pd.DataFrame, base_model: Path | None = None, neurons: Path | None = None
    ) -> Context:
        """What a strategy may know of the model, whose `greedy` table this is."""
        table = greedy.set_index("question_id").loc[self.questions.question_id]
        return Context(
            trajectories=[list(map(int, tokens)) for tokens in table.token_ids],
            entropies=[list(map(float, entropy)) for entropy in table.entropy],
            tokenizer=self.tokenizer,
            end_tokens=self.end_tokens,
            base_model=base_model,
            neurons=neurons,
        )

    def digest(self) -> str:
        """A digest of the prompts and gold answers: kept responses are graded."""
        graded = zip(self.prompts, self.questions.gold, strict=True)
        return value_digest([(each.question_id, each.token_ids, gold) for each, gold in graded])


def recorded(
    sampling: Mapping[str, Any],
    benchmark: Mapping[str, Any],
    metadata: Mapping[str, Any],
    **others: Any,
) -> dict[str, Any]:
    """What a table records of a job's parameters: not the batch size, as no draw depends on it.

    A job that resumes with another batch size therefore writes the same bytes.
    """
    values = {name: value for name, value in sampling.items() if name != "batch_size"}
    return {**metadata, **benchmark, "sampling": values, **others}


def decoding_params(
    sampling: Mapping[str, Any], benchmark: Mapping[str, Any], **draws: Any
) -> SamplingParams:
    """How a job decodes: greedily, or as `sampling` says if `draws` names a seed and a stream."""
    drawn = ("num_samples", "temperature", "top_p")
    return SamplingParams(
        **({name: sampling[name] for name in drawn} if draws else {"temperature": 0}),
        **draws,
        max_new_tokens=sampling["max_new_tokens"],
        stop=list(benchmark["stop"]),
        batch_size=sampling["batch_size"],
        batch_invariant=sampling["batch_invariant"],
    )


def few_shot_prompts(
    questions: pd.DataFrame,
    exemplars: list[dict[str, str]],
    tokenizer: PreTrainedTokenizerBase,
    context_length: int,
    max_new_tokens: int,
    template: PromptTemplate = DEFAULT_TEMPLATE,
    *,
    as_chat: bool = False,
) -> list[Prompt]:
    """Return the evaluation prompt of every question: the exemplars, then the original question.

    A paraphrase is never part of a prompt. With `as_chat`, each prompt is a user's message in the
    tokenizer's chat template.

    Raises:
        InputError: a prompt leaves no room for `max_new_tokens` in the model's context.
    """
    prefix = template.few_shot_prefix(exemplars)
    texts = [template.prompt(prefix, question) for question in questions.question]
    if as_chat:
        texts = [chat_prompt(tokenizer, [{"role": "user", "content": text}]) for text in texts]
    token_ids = encoded(tokenizer, texts)
    few_shot = list(map(Prompt, questions.question_id, token_ids))
    check_lengths(few_shot, context_length, max_new_tokens)
    return few_shot


def chat_prompt(tokenizer: PreTrainedTokenizerBase, messages: list[dict[str, str]]) -> str:
    """Messages in the tokenizer's chat template, up to where the model replies."""
    return str(
        tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, **SAME_DAY
        )
    )


def encoded(tokenizer: PreTrainedTokenizerBase, texts: list[str]) -> list[list[int]]:
    """The tokens of prompts: the tokenizer's beginning, once, whether or not a text has it.

    Chat templates write it or leave it out.
    """
    ids: list[list[int]] = tokenizer(texts)["input_ids"]
    start: list[int] = tokenizer("")["input_ids"]
    return [each[len(start) :] if each[: 2 * len(start)] == start * 2 else each for each in ids]


def check_lengths(prompts: list[Prompt], context_length: int, max_new_tokens: int) -> None:
    """Check that every prompt leaves room for `max_new_tokens` in the model's context.

    Raises:
        InputError: a prompt is too long.
    """
    longest = max(prompts, key=lambda prompt: len(prompt.token_ids))
    if len(longest.token_ids) + max_new_tokens > context_length:
        raise InputError(
            f"question {longest.question_id}: its prompt has {len(longest.token_ids)} tokens; with "
            f"max_new_tokens = {max_new_tokens} it exceeds the model's context of "
            f"{context_length} tokens. Use fewer exemplars or fewer new tokens"
        )


def scored_responses(
    inputs: JobInputs, index: int, responses: list[Response], stop: list[str]
) -> list[dict[str, Any]]:
    """Score the responses to the question of an index, in order of their sample id.

    A response's text is cut at the first stop string and stripped. Of the special tokens, it keeps
    those that mark the model's thinking. A row has the columns of `samples` and `greedy` tables.
    """
    added = inputs.tokenizer.added_tokens_decoder.items()
    special = {token_id: token.content for token_id, token in added if token.special}
    thinking = {token_id for token_id, token in special.items() if is_thinking_token(token)}
    hidden = special.keys() - thinking
    tokens = [row.token_ids[: -1 if row.finish_reason == "eos" else None] for row in responses]
    texts = inputs.tokenizer.batch_decode(
        [[token_id for token_id in row if token_id not in hidden] for row in tokens],
        skip_special_tokens=not thinking,
        clean_up_tokenization_spaces=False,
    )
    rows = []
    for sample_id, (response, text) in enumerate(zip(responses, texts, strict=True)):
        ends = [end for end in map(text.find, stop) if end >= 0]
        text = text[: min(ends, default=None)].strip()
        rows.append(
            {
                "question_id": inputs.prompts[index].question_id,
                "sample_id": sample_id,
                "text": text,
                "n_tokens": len(response.token_ids),
                **vars(response),
                **inputs.rule.grade(text, inputs.questions.gold.iloc[index])._asdict(),
            }
        )
    return rows
