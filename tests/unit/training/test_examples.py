"""Training examples: prompts and responses, and the ids of training against those of inference."""

import pandas as pd
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from zerogap.data.prompts import DEFAULT_TEMPLATE, exemplars
from zerogap.data.toy.word_problems import problems
from zerogap.errors import InputError
from zerogap.training.examples import (
    instruction_pairs,
    instruction_prompt,
    question_pairs,
    training_example,
    training_examples,
)
from zerogap.training.toy import tokenizers

TEXTS = [f"Q: {one.question}\nA: {one.rationale}" for one in problems(200, 3, "pretrain")]
EXEMPLARS = exemplars("toy", 2)
PREFIX = DEFAULT_TEMPLATE.few_shot_prefix(EXEMPLARS)
PROMPT = DEFAULT_TEMPLATE.prompt(PREFIX, "How many?")
TOKENIZER = tokenizers.train(TEXTS, "llama", 400, 512)
QUESTIONS = pd.DataFrame(
    {
        "question": ["How many?"],
        "paraphrase": ["What number?"],
        "rationale": ["It is 3 + 4 = 7."],
        "gold": ["7"],
    }
)


@pytest.mark.parametrize(
    ("column", "text"), [("question", "How many?"), ("paraphrase", "What num")]
)
def test_a_paraphrase_changes_the_question_and_not_the_answer(column: str, text: str) -> None:
    [(prompt, response)] = question_pairs(QUESTIONS, EXEMPLARS, column, DEFAULT_TEMPLATE)
    assert prompt.startswith(PREFIX)
    assert f"Q: {text}" in prompt[-30:]
    assert prompt.endswith("\nA:")
    assert response == " It is 3 + 4 = 7. The answer is 7."


def test_each_part_of_an_instruction_ends_with_an_empty_line() -> None:
    row = {"system": "Be brief.", "question": "Name a colour.", "response": "Red."}
    assert instruction_pairs([row]) == [("Be brief.\n\nName a colour.\n\n", "Red.")]
    assert instruction_prompt(row | {"system": ""}) == "Name a colour.\n\n"


def test_a_question_that_would_be_truncated_is_an_error() -> None:
    pairs = question_pairs(QUESTIONS, EXEMPLARS, "question", DEFAULT_TEMPLATE)
    [example] = training_examples(pairs, TOKENIZER, 512)
    tokens = len(
        TOKENIZER(example["prompt"] + example["response"] + "\n\n", add_special_tokens=False)[
            "input_ids"
        ]
    )
    assert training_examples(pairs, TOKENIZER, tokens + 1)  # with EOS it just fits
    with pytest.raises(InputError, match=rf"has {tokens + 1} tokens.*cutoff_len is {tokens}"):
        training_examples(pairs, TOKENIZER, tokens)


def test_truncated_instructions_are_counted(capsys) -> None:
    pairs = [("Say it.\n\n", "so " * 60), ("Say it.\n\n", "So.")]
    assert len(training_examples(pairs, TOKENIZER, 40, truncate=True)) == 2
    assert capsys.readouterr().out == "1 of 2 examples are truncated to 40 tokens\n"


@pytest.mark.parametrize(("family", "first"), [("llama", "<s>"), ("gemma4", "<bos>")])
def test_bos_is_written_out_if_the_tokenizer_adds_it(family: str, first: str) -> None:
    tokenizer = tokenizers.train(TEXTS, family, 400, 256)
    prompt, response, tokens = training_example(tokenizer, PROMPT, " It is 7.")
    assert prompt == first + PROMPT
    assert response == " It is 7."
    assert tokens == len(tokenizer(PROMPT + " It is 7.\n\n")["input_ids"]) + 1


def test_bos_is_not_written_if_the_tokenizer_adds_none() -> None:
    tokenizer = tokenizers.train(TEXTS, "gpt_neox", 400, 256)
    assert training_example(tokenizer, PROMPT, " It is 7.")[:2] == (PROMPT, " It is 7.")


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


def test_the_space_is_left_to_a_tokenizer_that_adds_it() -> None:
    core = metaspace("always")
    assert core.tokenize(" one") == core.tokenize("one")  # the premise
    assert training_example(core, "Q: how", " one")[0] == "<s>Q: how"


def test_an_instruction_may_end_in_line_breaks_that_merge() -> None:
    """GPT-2's way of splitting text: an empty line is one token, unless a word follows."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=257, initial_alphabet=alphabet, show_progress=False)
    core.train_from_iterator(["\n\n"] * 10, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="!")
    assert len(tokenizer("\n\n")["input_ids"]) == 1
    assert tokenizer("\n\nRed")["input_ids"][:2] == tokenizer("\n")["input_ids"] * 2
    assert training_example(tokenizer, "Go.\n\n", "Red.")[:2] == ("Go.\n\n", "Red.")


def test_ids_that_differ_from_inference_are_an_error_with_both_lists() -> None:
    tokenizer = tokenizers.train(TEXTS, "llama", 400, 256)
    with pytest.raises(InputError, match=r"(?s)training, response.*inference, all"):
        training_example(tokenizer, "How man", "y apples")  # splits a token
