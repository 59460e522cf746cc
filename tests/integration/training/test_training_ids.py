"""Training ids against inference ids: each class of tokenizers and LLaMA-Factory's own code.

The real tokenizers are in test_all_rows.
"""

import pytest

from helpers.toy_tokenizers import TOKENIZERS
from zerogap.data.prompts import DEFAULT_TEMPLATE, exemplars
from zerogap.training.examples import (
    AFTER_RESPONSE,
    instruction_examples,
    instruction_pairs,
    question_examples,
)
from zerogap.training.llamafactory import write_datasets

PREFIX = DEFAULT_TEMPLATE.few_shot_prefix(exemplars("lm_eval", 8))
# The first token of a prompt; Llama tokenizers begin with <s>.
FIRST = {"gemma4": "<bos>", "gpt_neox": "Q"}


@pytest.fixture(scope="module", params=TOKENIZERS)
def loaded(request, tmp_path_factory):
    """(name, tokenizer): small ones of each class as a job loads them."""
    from transformers import AutoTokenizer

    folder = tmp_path_factory.mktemp(request.param)
    TOKENIZERS[request.param]().save_pretrained(folder)
    return request.param, AutoTokenizer.from_pretrained(folder)


QUESTION = (
    DEFAULT_TEMPLATE.prompt(
        PREFIX, "Tom has 12 apples and buys 1,450 more.\nHow many – in all – has he?"
    ),
    DEFAULT_TEMPLATE.response("He has 12 + 1,450 = 1,462 apples. That's é lot.", "1462"),
)
INSTRUCTION = instruction_pairs(
    [{"system": "Be brief.", "question": "Name a colour:\n- red\n- blue", "response": "Red.\nYes."}]
)[0]


def example_of(pair, tokenizer):
    write = question_examples if pair is QUESTION else instruction_examples
    [example] = write([pair], tokenizer, 4096)
    return example


@pytest.fixture
def ids_and_labels(supervised, tmp_path):
    """(example, tokenizer) → what LLaMA-Factory makes of it."""

    def preprocess(example, tokenizer):
        write_datasets(tmp_path, {"instructions": [example], "questions": [example]})
        one, other = supervised(tokenizer, tmp_path)
        assert one == other
        return one

    return preprocess


@pytest.mark.parametrize("pair", [QUESTION, INSTRUCTION], ids=["question", "instruction"])
def test_training_sees_what_inference_sees(loaded, ids_and_labels, pair):
    name, tokenizer = loaded
    prompt, response = pair
    ids, labels = ids_and_labels(example_of(pair, tokenizer), tokenizer)

    prompt_ids = tokenizer(prompt)["input_ids"]  # as `responses.few_shot_prompts` asks
    assert ids[: len(prompt_ids)] == prompt_ids
    assert labels[: len(prompt_ids)] == [-100] * len(prompt_ids)
    if pair is QUESTION:
        whole = tokenizer(prompt + response + AFTER_RESPONSE)["input_ids"]
        assert ids == [*whole, tokenizer.eos_token_id]
    response_ids = ids[len(prompt_ids) :]
    assert labels[len(prompt_ids) :] == response_ids
    assert response_ids[-1] == tokenizer.eos_token_id
    assert ids.count(tokenizer.eos_token_id) == 1
    if pair is QUESTION:
        assert tokenizer.convert_ids_to_tokens(ids[0]) == FIRST.get(name, "<s>")
    text = tokenizer.decode(ids[:-1], skip_special_tokens=True)
    expected = prompt + response + AFTER_RESPONSE
    assert " ".join(text.split()) == " ".join(expected.split())
    assert text.count("\n") == expected.count("\n")
