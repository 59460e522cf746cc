"""From questions to prompts, and from generated tokens to scored responses."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pandas as pd
from transformers import PreTrainedTokenizerBase

from zerogap.data.extraction import ExtractionRule
from zerogap.data.plain_text import is_thinking_token
from zerogap.data.prompts import DEFAULT_TEMPLATE, PromptTemplate
from zerogap.engine import generation_config, loading
from zerogap.engine.decoder import Prompt, Response
from zerogap.errors import InputError
from zerogap.families.structure import config_of
from zerogap.io import parquet
from zerogap.io.digests import value_digest
from zerogap.strategies.base import Context
from zerogap.strategies.filtering import without_end_token


@dataclass(frozen=True)
class JobInputs:
    """What a job reads before it loads a model: the questions that the model is asked.

    Attributes:
        tokenizer: the model's tokenizer.
        questions: the `questions` table.
        prompts: one per question, in the same order.
        end_tokens: ids of the tokens that end a response.
    """

    tokenizer: PreTrainedTokenizerBase
    questions: pd.DataFrame
    prompts: list[Prompt]
    end_tokens: list[int]

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
        table = parquet.read_of_run(questions, "questions")
        if only_leaked:
            table = table[table.leaked].reset_index(drop=True)
        prompts = few_shot_prompts(
            table,
            json.loads(exemplars.read_text()) if exemplars else [],
            tokenizer,
            loading.context_length(config_of(model)),
            sampling["max_new_tokens"],
            PromptTemplate.of(benchmark["prompt"]),
        )
        config = generation_config.read(model)
        generation_config.note_ignored(config, model)
        return cls(tokenizer, table, prompts, generation_config.end_tokens(tokenizer, config))

    def context(
        self, greedy: pd.DataFrame, base_model: Path | None = None, neurons: Path | None = None
    ) -> Context:
        """Return what a strategy may know of the model, whose `greedy` table this is."""
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
        """Return a digest of the prompts and gold answers: kept responses are graded."""
        graded = zip(self.prompts, self.questions.gold, strict=True)
        return value_digest([(each.question_id, each.token_ids, gold) for each, gold in graded])


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

    Args:
        questions: the `questions` table. A paraphrase is never part of a prompt.
        exemplars: `question` and `target` of the few-shot examples.
        tokenizer: the model's tokenizer.
        context_length: tokens that the model's context has room for.
        max_new_tokens: tokens that are generated after the prompt.
        template: how the benchmark writes its questions and answers.
        as_chat: whether each prompt is a user's message in the tokenizer's chat template.

    Raises:
        InputError: a prompt leaves no room for `max_new_tokens` in the model's context.
    """
    prefix = template.few_shot_prefix(exemplars)
    texts = [template.prompt(prefix, question) for question in questions.question]
    if as_chat:
        texts = [
            tokenizer.apply_chat_template(
                [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
            )
            for text in texts
        ]
    # A chat template writes the special tokens itself.
    encoded = tokenizer(texts, add_special_tokens=not as_chat)["input_ids"]
    few_shot = [
        Prompt(question_id, token_ids)
        for question_id, token_ids in zip(questions.question_id, encoded, strict=True)
    ]
    check_lengths(few_shot, context_length, max_new_tokens)
    return few_shot


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


def response_texts(
    responses: list[Response], tokenizer: PreTrainedTokenizerBase, stop: list[str]
) -> list[str]:
    """Return the text of every response, cut at the first stop string and stripped.

    Of the special tokens, a text keeps those that mark the model's thinking.
    """
    added = tokenizer.added_tokens_decoder.items()
    special = {token_id: token.content for token_id, token in added if token.special}
    thinking = {token_id for token_id, token in special.items() if is_thinking_token(token)}
    hidden = special.keys() - thinking
    rows = [without_end_token(response.token_ids, response.finish_reason) for response in responses]
    decoded = tokenizer.batch_decode(
        [[token_id for token_id in row if token_id not in hidden] for row in rows],
        skip_special_tokens=not thinking,
        clean_up_tokenization_spaces=False,
    )
    return [_cut(text, stop).strip() for text in decoded]


def scored_responses(
    question_id: str,
    gold: str | None,
    responses: list[Response],
    tokenizer: PreTrainedTokenizerBase,
    stop: list[str],
    rule: ExtractionRule,
) -> list[dict[str, Any]]:
    """Score one question's responses.

    Args:
        question_id: the question.
        gold: its gold answer; without one the responses are not marked right or wrong.
        responses: in order of their sample id.
        tokenizer: the model's tokenizer.
        stop: the strings that end a response.
        rule: extracts the answer and compares it with the gold answer.

    Returns:
        One row per response, with the columns of the `samples` and `greedy` tables.
    """
    return [
        {
            "question_id": question_id,
            "sample_id": sample_id,
            "text": text,
            "n_tokens": len(response.token_ids),
            **vars(response),
            **rule.grade(text, gold)._asdict(),
        }
        for sample_id, (response, text) in enumerate(
            zip(responses, response_texts(responses, tokenizer, stop), strict=True)
        )
    ]


def _cut(text: str, stop: list[str]) -> str:
    positions = [position for position in map(text.find, stop) if position >= 0]
    return text[: min(positions)] if positions else text
