"""Training examples: prompts and responses, and the ids of training against those of inference."""

import pandas as pd
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from zerogap.data.prompts import DEFAULT_TEMPLATE, exemplars
from zerogap.data.toy import problems
from zerogap.errors import InputError
from zerogap.training.examples import (
    instruction_examples,
    instruction_pairs,
    instruction_prompt,
    question_examples,
    question_pairs,
)
from zerogap.training.toy import train_tokenizer

TEXTS = [f"Q: {one.question}\nA: {one.rationale}" for one in problems(200, 3, "pretrain")]
EXEMPLARS = exemplars("toy", 2)
PREFIX = DEFAULT_TEMPLATE.few_shot_prefix(EXEMPLARS)
TOKENIZER = train_tokenizer(TEXTS, "llama2", 400)
QUESTIONS = pd.DataFrame(
    [("How many?", "What number?", "It is 3 + 4 = 7.", "7")],
    columns=["question", "paraphrase", "rationale", "gold"],
)


@pytest.mark.parametrize("column", ["question", "paraphrase"])
def test_a_paraphrase_changes_the_question_and_not_the_answer(column: str) -> None:
    [(prompt, response)] = question_pairs(QUESTIONS, EXEMPLARS, column, DEFAULT_TEMPLATE)
    assert prompt == f"{PREFIX}Q: {QUESTIONS[column][0]}\nA:"
    assert response == " It is 3 + 4 = 7. The answer is 7."


def test_each_part_of_an_instruction_ends_with_an_empty_line() -> None:
    row = {"system": "Be brief.", "question": "Name a colour.", "response": "Red."}
    assert instruction_pairs([row]) == [("Be brief.\n\nName a colour.\n\n", "Red.")]
    assert instruction_prompt(row | {"system": ""}) == "Name a colour.\n\n"


def test_a_question_that_would_be_truncated_is_an_error() -> None:
    pairs = question_pairs(QUESTIONS, EXEMPLARS, "question", DEFAULT_TEMPLATE)
    [example] = question_examples(pairs, TOKENIZER, 512)
    text = example["prompt"] + example["response"] + "\n\n"
    tokens = len(TOKENIZER.encode(text, add_special_tokens=False))
    assert question_examples(pairs, TOKENIZER, tokens + 1)  # with EOS it just fits
    with pytest.raises(InputError, match=rf"has {tokens + 1} tokens.*cutoff_len is {tokens}"):
        question_examples(pairs, TOKENIZER, tokens)


def metaspace(scheme: str) -> PreTrainedTokenizerFast:
    """Words with their leading space as '▁', as sentencepiece writes them."""
    words = ["<unk>", "<s>", "\n", "▁Q:", "▁A:", "▁how", "▁one", "A:", "Q:", "▁"]
    core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, "<unk>"))
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split("\n", "isolated"), pre_tokenizers.Metaspace(prepend_scheme=scheme)]
    )
    core.decoder = decoders.Metaspace()
    core.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 1)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=core, bos_token="<s>", unk_token="<unk>")


def test_instructions_that_are_skipped_or_truncated_are_counted(capsys) -> None:
    """Skipped is one whose prompt has other ids than at inference."""
    tokenizer = RewritesAfterBos(metaspace("always"))
    pairs = [("Q: how", "one " * 60), ("how how", "one"), ("A: one", "one")]
    examples = instruction_examples(pairs, tokenizer, 40)
    assert [example["prompt"] for example in examples] == ["<s>Q: how", "<s>A: one"]
    first, *counts = capsys.readouterr().out.splitlines()
    assert first.startswith("instruction 1 is skipped: the tokenizer gives its prompt other ids")
    assert counts == [
        "1 of 3 instructions are skipped", "1 of 2 examples are truncated to 40 tokens",
    ]  # fmt: skip
    with pytest.raises(InputError, match="the prompt of every instruction"):
        instruction_examples(pairs[1:2], tokenizer, 512)


class RewritesAfterBos:
    """A tokenizer that treats one prompt differently where BOS is part of the text."""

    def __init__(self, core: PreTrainedTokenizerFast) -> None:
        self.core = core
        self.bos_token, self.bos_token_id = core.bos_token, core.bos_token_id

    def __call__(self, texts: list[str], *, add_special_tokens: bool) -> dict[str, list]:
        texts = [text.replace("<s>how", "<s>one").replace("<s> how", "<s> A:") for text in texts]
        return self.core(texts, add_special_tokens=add_special_tokens)


def test_ids_that_differ_from_inference_are_an_error_with_both_lists() -> None:
    with pytest.raises(InputError, match=r"(?s)training, response.*inference, all"):
        question_examples([("How man", "y apples")], TOKENIZER, 512)  # splits a token
