"""From questions to prompts and from generated tokens to scored responses."""

import pandas as pd
from transformers import PreTrainedTokenizerBase

from zerogap.data.extraction import ExtractionRule
from zerogap.data.prompts import DEFAULT_TEMPLATE, PromptTemplate
from zerogap.engine.decoder import Prompt, Response
from zerogap.errors import InputError


def few_shot_prompts(
    questions: pd.DataFrame,
    exemplars: list[dict[str, str]],
    tokenizer: PreTrainedTokenizerBase,
    context_length: int,
    max_new_tokens: int,
    template: PromptTemplate = DEFAULT_TEMPLATE,
) -> list[Prompt]:
    """The evaluation prompt of every question: the shots, then the question as it was published.

    Raises:
        InputError: a prompt that leaves no room for `max_new_tokens` in the model's context.
    """
    prefix = template.few_shot_prefix(exemplars)
    texts = [template.prompt(prefix, question) for question in questions.question]
    made = [
        Prompt(question_id, token_ids)
        for question_id, token_ids in zip(
            questions.question_id, tokenizer(texts)["input_ids"], strict=True
        )
    ]
    check_lengths(made, context_length, max_new_tokens)
    return made


def check_lengths(made: list[Prompt], context_length: int, max_new_tokens: int) -> None:
    """Refuse prompts that leave no room for `max_new_tokens` in the model's context."""
    longest = max(made, key=lambda prompt: len(prompt.token_ids))
    if len(longest.token_ids) + max_new_tokens > context_length:
        raise InputError(
            f"question {longest.question_id}: its prompt has {len(longest.token_ids)} tokens; with "
            f"max_new_tokens = {max_new_tokens} it exceeds the model's context of "
            f"{context_length}: use fewer shots or fewer new tokens"
        )


def texts(
    responses: list[Response], tokenizer: PreTrainedTokenizerBase, stop: list[str]
) -> list[str]:
    """What the responses say: cut at the first stop string, without special tokens, stripped."""
    decoded = tokenizer.batch_decode(
        [response.token_ids for response in responses],
        skip_special_tokens=True,
        clean_up_tokenization_spaces=False,
    )
    return [_cut(text, stop).strip() for text in decoded]


def sample_rows(
    question_id: str,
    gold: str | None,
    responses: list[Response],
    tokenizer: PreTrainedTokenizerBase,
    stop: list[str],
    rule: ExtractionRule,
) -> list[tuple]:
    """One question's rows of the `samples` contract, in its column order."""
    said = texts(responses, tokenizer, stop)
    return [
        (
            question_id,
            index,
            response.token_ids,
            text,
            *rule.grade(text, gold),
            len(response.token_ids),
            response.finish_reason,
        )
        for index, (response, text) in enumerate(zip(responses, said, strict=True))
    ]


def _cut(text: str, stop: list[str]) -> str:
    places = [place for place in (text.find(one) for one in stop) if place >= 0]
    return text[: min(places)] if places else text
