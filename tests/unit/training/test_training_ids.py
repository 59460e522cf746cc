"""Training ids against inference ids: each family's tokenizer class, LLaMA-Factory's own code."""

import importlib.util
import sys
from pathlib import Path

import pytest

from helpers.toy_tokenizers import TOKENIZERS
from zerogap.data import prompts
from zerogap.families import AFTER_RESPONSE
from zerogap.training import llamafactory

SHOTS = prompts.few_shot_prefix(prompts.exemplars("lm_eval", 8))
FIRST = {"gemma4": "<bos>", "gpt_neox": "Q"}  # and <s> of the Llamas


@pytest.fixture(scope="module", params=TOKENIZERS)
def loaded(request, tmp_path_factory):
    """The tokenizer as a job finds it: saved and loaded again."""
    from transformers import AutoTokenizer

    folder = tmp_path_factory.mktemp(request.param)
    TOKENIZERS[request.param]().save_pretrained(folder)
    return request.param, AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def patch():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def supervised(patch):
    """(tokenizer, example) → input ids and labels, by LLaMA-Factory's preprocessing."""
    for name in ("sklearn", "scipy"):  # the scripts do without them, LLaMA-Factory does not
        if sys.modules.get(name, ...) is None:
            del sys.modules[name]
    if importlib.util.find_spec("torchaudio") is None:
        patch.syspath_prepend(Path(llamafactory.__file__).parent / "absent")
    from llamafactory.data.processor.supervised import SupervisedDatasetProcessor
    from llamafactory.data.template import get_template_and_fix_tokenizer
    from llamafactory.hparams import DataArguments

    def preprocess(tokenizer, example):
        arguments = DataArguments(template="fewshot", cutoff_len=4096)
        template = get_template_and_fix_tokenizer(tokenizer, arguments)
        processor = SupervisedDatasetProcessor(template, tokenizer, None, arguments)
        row = {
            "_prompt": [[{"role": "user", "content": example["prompt"]}]],
            "_response": [[{"role": "assistant", "content": example["response"]}]],
            "_system": [""],
            "_tools": [""],
            "_images": [None],
            "_videos": [None],
            "_audios": [None],
        }
        made = processor.preprocess_dataset(row)
        return made["input_ids"][0], made["labels"][0]

    return preprocess


QUESTION = (
    prompts.prompt(SHOTS, "Tom has 12 apples and buys 1,450 more.\nHow many – in all – has he?"),
    prompts.response("He has 12 + 1,450 = 1,462 apples. That's é lot.", "1462"),
)
INSTRUCTION = llamafactory.instruction_pairs(
    [{"system": "Be brief.", "question": "Name a colour:\n- red\n- blue", "response": "Red.\nYes."}]
)[0]


@pytest.mark.parametrize("pair", [QUESTION, INSTRUCTION], ids=["question", "instruction"])
def test_training_sees_what_inference_sees(loaded, supervised, pair):
    family, tokenizer = loaded
    prompt, response = pair
    [example] = llamafactory.examples([pair], tokenizer, 4096)
    ids, labels = supervised(tokenizer, example)

    asked = tokenizer(prompt)["input_ids"]  # as `responses.few_shot_prompts` asks
    assert ids[: len(asked)] == asked
    assert labels[: len(asked)] == [-100] * len(asked)
    answered = ids[len(asked) :]
    assert labels[len(asked) :] == answered
    assert answered[-1] == tokenizer.eos_token_id
    assert ids.count(tokenizer.eos_token_id) == 1
    if pair is QUESTION:
        assert tokenizer.convert_ids_to_tokens(ids[0]) == FIRST.get(family, "<s>")
    said = tokenizer.decode(ids[:-1], skip_special_tokens=True)
    expected = prompt + response + AFTER_RESPONSE
    assert " ".join(said.split()) == " ".join(expected.split())
    assert said.count("\n") == expected.count("\n")


def test_the_classes_differ_in_what_has_to_be_written(loaded):
    family, tokenizer = loaded
    one, other = llamafactory.examples([QUESTION, INSTRUCTION], tokenizer, 4096)
    bos = {"llama": "<s> ", "gemma4": "<bos>", "gpt_neox": ""}.get(family, "<s>")
    assert one["prompt"] == bos + QUESTION[0]
    assert other["prompt"] == bos + INSTRUCTION[0]
    said = QUESTION[1].strip() if family == "llama_as_stored" else QUESTION[1]
    assert (one["response"], other["response"]) == (said, INSTRUCTION[1])


def test_a_generated_response_goes_on_as_in_training(loaded, supervised):
    """What is decoded of the training ids after a prompt is the response, with its one space."""
    _, tokenizer = loaded
    [example] = llamafactory.examples([QUESTION], tokenizer, 4096)
    ids, labels = supervised(tokenizer, example)
    whole = tokenizer(QUESTION[0] + QUESTION[1] + AFTER_RESPONSE)["input_ids"]
    assert ids == [*whole, tokenizer.eos_token_id]
    assert sum(label != -100 for label in labels) == len(whole) + 1 - len(
        tokenizer(QUESTION[0])["input_ids"]
    )
