"""Training ids against inference ids: each family's own tokenizer class, LLaMA-Factory's own code.

The tokenizers are the classes that `transformers` has for the three models, built on a small BPE
learnt here; what they do with special tokens, spaces and line breaks is the classes' doing.
"""

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    GemmaTokenizer,
    GPTNeoXTokenizer,
    LlamaTokenizer,
    PreTrainedTokenizerBase,
    TokenizersBackend,
)

from zerogap.data import prompts
from zerogap.data.instructions import instructions
from zerogap.data.problems import problems
from zerogap.training import llamafactory
from zerogap.training.families import AFTER_RESPONSE

PROBLEMS = problems(300, 3, "pretrain")
TEXTS = [f"Q: {one.question} A: {one.rationale} The answer is 7." for one in PROBLEMS]
TEXTS += [" ".join(one.values()) for one in instructions(200, 3)]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
SHOTS = prompts.few_shot_prefix(prompts.exemplars("lm_eval", 8))


def learnt(special: list[str], byte_level: bool) -> dict:
    """Vocabulary and merges of a small BPE: on bytes, or on characters with '▁' for a space."""
    core = Tokenizer(models.BPE())
    if byte_level:
        core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
    else:
        core.pre_tokenizer = pre_tokenizers.Metaspace()
        alphabet = ["▁"]
    trainer = trainers.BpeTrainer(
        vocab_size=900,
        special_tokens=special,
        initial_alphabet=alphabet,
        show_progress=False,
    )
    core.train_from_iterator([" ".join(text.split()) for text in TEXTS], trainer)
    model = json.loads(core.to_str())["model"]
    return {"vocab": model["vocab"], "merges": [tuple(pair) for pair in model["merges"]]}


def llama() -> PreTrainedTokenizerBase:
    return LlamaTokenizer(
        **learnt(["<unk>", "<s>", "</s>", *BYTES], False), legacy=False, add_bos_token=True
    )


def llama_as_stored() -> PreTrainedTokenizerBase:
    """Llama-2's own tokenizer.json: a normaliser puts the '▁' before every part of a text."""
    from tokenizers import decoders, normalizers, processors

    made = learnt(["<unk>", "<s>", "</s>", *BYTES], False)
    core = Tokenizer(models.BPE(**made, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    core.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    core.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1),
        ]
    )
    core.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 1)]
    )
    return TokenizersBackend(
        tokenizer_object=core, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def gemma() -> PreTrainedTokenizerBase:
    made = learnt(["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", *BYTES], False)
    for line in ("\n", "\n\n"):  # tokens of their own, as in Gemma
        made["vocab"][line] = len(made["vocab"])
    return GemmaTokenizer(
        vocab=made["vocab"], merges=[*made["merges"], ("\n", "\n")], add_bos_token=True
    )


def gpt_neox() -> PreTrainedTokenizerBase:
    return GPTNeoXTokenizer(**learnt(["<|endoftext|>", "<|padding|>"], True))


TOKENIZERS = {
    "llama": llama,
    "llama_as_stored": llama_as_stored,
    "gemma4": gemma,
    "gpt_neox": gpt_neox,
}
FIRST = {"gemma4": "<bos>", "gpt_neox": "Q"}  # and <s> of the Llamas


@pytest.fixture(scope="module", params=TOKENIZERS)
def loaded(request, tmp_path_factory):
    """The tokenizer as a job finds it: saved and loaded again."""
    from transformers import AutoTokenizer

    folder = tmp_path_factory.mktemp(request.param)
    TOKENIZERS[request.param]().save_pretrained(folder)
    return request.param, AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def supervised():
    """(tokenizer, example) → input ids and labels, by LLaMA-Factory's preprocessing."""
    if importlib.util.find_spec("torchaudio") is None:
        sys.path.append(str(Path(llamafactory.__file__).parent / "absent"))
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
