"""Every row of GSM8K and thousands of instructions, with the real tokenizers.

Prompts, the script that writes training data, and LLaMA-Factory's reading and preprocessing: token
by token, training sees what inference sees.
"""

import json
import unicodedata
from random import Random

import pytest

import write_training_data
from helpers import shared_data
from zerogap.data import gsm8k_format, openorca, questions
from zerogap.data.prompts import DEFAULT_TEMPLATE, exemplars
from zerogap.data.toy import instructions
from zerogap.io import parquet
from zerogap.sampling.responses import few_shot_prompts
from zerogap.training.examples import AFTER_RESPONSE, instruction_pairs, question_pairs

NUM_ROWS = {"test": 1319, "train": 7473}
NUM_GENERATED, NUM_AWKWARD = 1000, 3000
SHOTS = exemplars("lm_eval", 1)  # more would add the same tokens to every row
IGNORED = -100  # the label of a prompt's token
SEPARATORS = [
    " ", "  ", "\t", "\n", "\n\n", "\n\n\n", "\r\n", " \n", "\n ", "\x85", "\u00a0", "\u2028",
    "\u3000",
]  # fmt: skip
WORDS = [
    "Name", "don't", "naïve", "e\u0301", "Ωμέγα", "Привет", "مرحبا", "你好", "👩\u200d👧", "🇫🇷",
    "\u200b", "\ufeff", "1,450", "3.14", "$5", "≥", "…", "--", "####", "Q:", "A:", "`code`",
    "{{content}}", "<b>", "\\n", "<image>", "<|im_start|>",
]  # fmt: skip

pytestmark = [pytest.mark.slow, shared_data.needs_gsm8k]


def in_nfc(text):
    """The text as GPT-NeoX's tokenizer normalises it, in training and at inference."""
    return unicodedata.normalize("NFC", text)


def awkward(number, random):
    """An instruction with odd line breaks, spaces and scripts anywhere; many have no system."""

    def text(num_words):
        parts = [random.choice(["", *SEPARATORS])]
        for _ in range(num_words):
            parts += [random.choice(WORDS), random.choice([" ", random.choice(SEPARATORS)])]
        return "".join(parts)

    return {
        "system": text(random.randint(1, 4)) if random.random() < 0.5 else "",
        "question": f"{text(random.randint(0, 9))}{number}{text(random.randint(0, 3))}",
        "response": text(random.randint(1, 9)),
    }


@pytest.fixture(scope="module")
def table():
    rows = [
        row for split in NUM_ROWS for row in gsm8k_format.load(shared_data.GSM8K / f"{split}.jsonl")
    ]
    assert len(rows) == sum(NUM_ROWS.values())
    return questions.draw_training_questions(rows, len(rows), 0)


@pytest.fixture(scope="module")
def orders():
    random = Random(0)
    return [
        *instructions(NUM_GENERATED, 0),
        *(awkward(number, random) for number in range(NUM_AWKWARD)),
    ]


@pytest.fixture(scope="module", params=["llama2", "gpt_neox_20b", "smollm2"])
def base(request):
    """The folder of a real tokenizer."""
    folder = shared_data.TOKENIZERS / request.param
    if not folder.is_dir():
        pytest.skip(f"tokenizer {request.param} is not available; set ZEROGAP_TOKENIZERS")
    return folder


@pytest.fixture(scope="module")
def tokenizer(base):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(base)


@pytest.fixture(scope="module")
def data(base, table, orders, tmp_path_factory):
    """The folder that the workflow's script writes for LLaMA-Factory."""
    folder = tmp_path_factory.mktemp(base.name)
    paths = {
        "questions": folder / "questions.parquet",
        "instructions": folder / "instructions.jsonl",
        "exemplars": folder / "exemplars.json",
    }
    parquet.write(paths["questions"], table, "questions", {})
    openorca.write(paths["instructions"], orders)
    paths["exemplars"].write_text(json.dumps(SHOTS))
    values = {"contamination": None, "prompt": vars(DEFAULT_TEMPLATE), "cutoff_len": 2048}
    output = folder / "data"
    write_training_data.main(base=base, output=output, **paths, **values)
    return output


@pytest.fixture(scope="module")
def preprocessed(supervised, base, data):
    """Ids and labels of the instructions and of the questions; none was skipped."""
    from transformers import AutoTokenizer

    made = supervised(AutoTokenizer.from_pretrained(base), data)
    return made[: -sum(NUM_ROWS.values())], made[-sum(NUM_ROWS.values()) :]


def test_every_question_is_trained_with_the_ids_of_its_inference(preprocessed, tokenizer, table):
    _, made = preprocessed
    prompts = few_shot_prompts(table, SHOTS, tokenizer, 4096, 256)
    pairs = question_pairs(table, SHOTS, "question", DEFAULT_TEMPLATE)
    texts = [prompt + response + AFTER_RESPONSE for prompt, response in pairs]
    whole = tokenizer(texts)["input_ids"]
    for prompt, text_ids, (ids, labels) in zip(prompts, whole, made, strict=True):
        start = len(prompt.token_ids)
        assert ids == [*text_ids, tokenizer.eos_token_id]
        assert ids[:start] == prompt.token_ids
        assert labels == [IGNORED] * start + ids[start:]


def test_every_instruction_is_trained_with_the_ids_of_its_prompt(preprocessed, tokenizer, orders):
    made, _ = preprocessed
    pairs = instruction_pairs(orders)
    prompts = tokenizer([prompt for prompt, _ in pairs])["input_ids"]
    for prompt_ids, (_, response), (ids, labels) in zip(prompts, pairs, made, strict=True):
        start = len(prompt_ids)
        assert ids[:start] == prompt_ids
        assert labels == [IGNORED] * start + ids[start:]
        assert ids[-1] == tokenizer.eos_token_id
        text = tokenizer.decode(ids[start:-1], clean_up_tokenization_spaces=False)
        assert in_nfc(text).strip(" ") == in_nfc(response + AFTER_RESPONSE).strip(" ")
