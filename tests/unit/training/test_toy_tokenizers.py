"""The tokenizers of the toy models: digits, newlines, special tokens, prefixes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zerogap.data.prompts import DEFAULT_TEMPLATE, exemplars
from zerogap.data.toy.word_problems import problems
from zerogap.families import FAMILIES
from zerogap.training.toy import tokenizers

TEXTS = [
    f"Q: {one.question}\nA:{DEFAULT_TEMPLATE.response(one.rationale, one.gold)}\n\n"
    for one in problems(400, 3, "pretrain")
]
TOKENIZERS = {family: tokenizers.train(TEXTS, family, 700, 512) for family in FAMILIES}
families = pytest.mark.parametrize("family", TOKENIZERS)


@families
@settings(max_examples=50, deadline=None)
@given(text=st.text(max_size=80))
def test_decoding_gives_back_any_text(family: str, text: str) -> None:
    tokenizer = TOKENIZERS[family]
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids, clean_up_tokenization_spaces=False) == text


@families
@given(number=st.integers(0, 10**9))
@settings(max_examples=30, deadline=None)
def test_each_digit_is_a_token(family: str, number: int) -> None:
    assert TOKENIZERS[family].tokenize(f"has {number} in")[-1 - len(str(number)) : -1] == list(
        str(number)
    )


@families
def test_frequent_words_are_one_token_and_the_vocabulary_is_full(family: str) -> None:
    tokenizer = TOKENIZERS[family]
    assert len(tokenizer) == 700
    assert len(tokenizer.tokenize(" The answer is")) == 3


@pytest.mark.parametrize(
    ("family", "bos", "eos"), [("llama", "<s>", "</s>"), ("gemma4", "<bos>", "<eos>")]
)
def test_llama_and_gemma_begin_with_bos(family: str, bos: str, eos: str) -> None:
    tokenizer = TOKENIZERS[family]
    ids = tokenizer("Q: one")["input_ids"]
    assert ids[0] == tokenizer.convert_tokens_to_ids(bos) == tokenizer.bos_token_id
    assert ids[1:] == tokenizer("Q: one", add_special_tokens=False)["input_ids"]
    assert tokenizer(bos + "Q: one", add_special_tokens=False)["input_ids"] == ids
    assert tokenizer.eos_token == eos


def test_gpt_neox_adds_no_bos() -> None:
    tokenizer = TOKENIZERS["gpt_neox"]
    ids = tokenizer("Q: one")["input_ids"]
    assert ids == tokenizer("Q: one", add_special_tokens=False)["input_ids"]
    assert tokenizer.eos_token == "<|endoftext|>"


@families
def test_the_tokens_of_the_exemplars_are_a_prefix_of_every_prompt(family: str) -> None:
    tokenizer = TOKENIZERS[family]
    prefix = DEFAULT_TEMPLATE.few_shot_prefix(exemplars("toy", 2))
    exemplar_ids = tokenizer(prefix)["input_ids"]
    for one in problems(20, 0, "test"):
        ids = tokenizer(DEFAULT_TEMPLATE.prompt(prefix, one.question))["input_ids"]
        assert ids[: len(exemplar_ids)] == exemplar_ids


@families
def test_an_empty_line_is_always_the_same_tokens(family: str) -> None:
    tokenizer = TOKENIZERS[family]
    line = tokenizer("\n\n", add_special_tokens=False)["input_ids"]
    assert len(line) == 2
    for before, after in ((".", ""), (".", "Q: Who"), ("7", "x"), (" ", "\n")):
        ids = tokenizer(f"{before}\n\n{after}", add_special_tokens=False)["input_ids"]
        assert ids[1:3] == line


@families
def test_a_saved_tokenizer_loads_unchanged(family: str, tmp_path) -> None:
    from transformers import AutoTokenizer

    TOKENIZERS[family].save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded(TEXTS[0])["input_ids"] == TOKENIZERS[family](TEXTS[0])["input_ids"]
