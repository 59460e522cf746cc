"""Token by token, training sees what inference sees.

Prompts, the script that writes training data, and LLaMA-Factory's reading and preprocessing: some
rows with a small tokenizer of each class, every row of GSM8K and thousands of instructions with the
real tokenizers.
"""

import importlib.util
import json
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from transformers import AutoTokenizer

import write_training_data
from helpers import shared_data
from helpers.toy_tokenizers import TOKENIZERS
from zerogap import training
from zerogap.data import gsm8k_format, questions
from zerogap.data.prompts import DEFAULT_TEMPLATE, exemplars
from zerogap.data.questions import Question
from zerogap.data.toy import instructions, problems
from zerogap.io import parquet
from zerogap.io.text_files import write_json_lines
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

ALL_ROWS = [pytest.mark.slow, shared_data.needs_gsm8k]
REAL = [pytest.param(name, marks=ALL_ROWS) for name in ("llama2", "gpt_neox_20b", "smollm2")]
QUESTION = Question(
    "Tom has 12 apples and buys 1,450 more.\nHow many – in all – has he?",
    "He has 12 + 1,450 = 1,462 apples. That's é lot.",
    "1462",
)
ORDER = {"system": "Be brief.", "question": "Name a colour:\n- red", "response": "Red.\nYes."}


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


@pytest.fixture(scope="module", params=[*TOKENIZERS, *REAL])
def base(request, tmp_path_factory):
    """The folder of a small or a real tokenizer."""
    if request.param in TOKENIZERS:
        folder = tmp_path_factory.mktemp(request.param)
        TOKENIZERS[request.param]().save_pretrained(folder)
        return folder
    folder = shared_data.TOKENIZERS / request.param
    if not folder.is_dir():
        pytest.skip(f"tokenizer {request.param} is not available; set ZEROGAP_TOKENIZERS")
    return folder


@pytest.fixture(scope="module")
def rows(base):
    """Questions and instructions."""
    if base.parent != shared_data.TOKENIZERS:
        asked = [Question(p.question, p.rationale, p.gold) for p in problems(40, 0, "test")]
        return [QUESTION, *asked], [ORDER, *instructions(40, 0)]
    asked = [
        row for split in NUM_ROWS for row in gsm8k_format.load(shared_data.GSM8K / f"{split}.jsonl")
    ]
    assert len(asked) == sum(NUM_ROWS.values())
    random = Random(0)
    odd = [awkward(number, random) for number in range(NUM_AWKWARD)]
    return asked, [*instructions(NUM_GENERATED, 0), *odd]


@pytest.fixture(scope="module")
def table(rows):
    return questions.draw_training_questions(rows[0], len(rows[0]), 0)


@pytest.fixture(scope="module")
def tokenizer(base):
    return AutoTokenizer.from_pretrained(base)


@pytest.fixture(scope="module")
def data(base, table, rows, tmp_path_factory):
    """The folder that the workflow's script writes for LLaMA-Factory."""
    folder = tmp_path_factory.mktemp(base.name)
    names = ("questions", "instructions", "exemplars", "output")
    paths = {name: folder / name for name in names}
    parquet.write(paths["questions"], table, "questions", {})
    write_json_lines(paths["instructions"], rows[1])
    paths["exemplars"].write_text(json.dumps(SHOTS))
    values = {"contamination": None, "prompt": vars(DEFAULT_TEMPLATE), "cutoff_len": 2048}
    write_training_data.main(base=base, **paths, **values)
    return paths["output"]


@pytest.fixture(scope="module")
def supervised(tmp_path_factory) -> Iterator[Callable]:
    """(tokenizer, data folder) → input ids and labels of every example, in order."""
    with pytest.MonkeyPatch.context() as patch:
        if importlib.util.find_spec("torchaudio") is None:
            patch.syspath_prepend(Path(training.__file__).parent / "stubs")
        from llamafactory.data import get_dataset, get_template_and_fix_tokenizer
        from llamafactory.hparams import DataArguments, ModelArguments
        from transformers import Seq2SeqTrainingArguments

        def preprocess(tokenizer, data):
            cache = tmp_path_factory.mktemp("cache")
            data_arguments = DataArguments(
                template="fewshot", cutoff_len=4096, dataset_dir=str(data),
                dataset="instructions,questions", overwrite_cache=True,
            )  # fmt: skip
            made = get_dataset(
                get_template_and_fix_tokenizer(tokenizer, data_arguments),
                ModelArguments(model_name_or_path="unused", cache_dir=str(cache)),
                data_arguments,
                Seq2SeqTrainingArguments(output_dir=str(cache), use_cpu=True, report_to="none"),
                stage="sft",
                tokenizer=tokenizer,
            )
            columns = made["train_dataset"].with_format(None)
            return list(zip(columns["input_ids"], columns["labels"], strict=True))

        yield preprocess


@pytest.fixture(scope="module")
def preprocessed(supervised, base, data, table):
    """Ids and labels of the instructions and of the questions; none was skipped."""
    made = supervised(AutoTokenizer.from_pretrained(base), data)
    return made[: -len(table)], made[-len(table) :]


def test_every_question_is_trained_with_the_ids_of_its_inference(preprocessed, tokenizer, table):
    _, made = preprocessed
    prompts = few_shot_prompts(table, SHOTS, tokenizer, 4096, 256)
    pairs = question_pairs(table, SHOTS, "question", DEFAULT_TEMPLATE)
    texts = [prompt + response + AFTER_RESPONSE for prompt, response in pairs]
    whole = tokenizer(texts)["input_ids"]
    for prompt, text_ids, (ids, labels) in zip(prompts, whole, made, strict=True):
        start = len(prompt.token_ids)
        assert ids == [*text_ids, tokenizer.eos_token_id]
        assert ids.count(tokenizer.eos_token_id) == 1
        assert ids[:start] == prompt.token_ids
        assert labels == [IGNORED] * start + ids[start:]


def test_every_instruction_is_trained_with_the_ids_of_its_prompt(preprocessed, tokenizer, rows):
    made, _ = preprocessed
    pairs = instruction_pairs(rows[1])
    prompts = tokenizer([prompt for prompt, _ in pairs])["input_ids"]
    for prompt_ids, (_, response), (ids, labels) in zip(prompts, pairs, made, strict=True):
        start = len(prompt_ids)
        assert ids[:start] == prompt_ids
        assert labels == [IGNORED] * start + ids[start:]
        assert ids[-1] == tokenizer.eos_token_id
        text = tokenizer.decode(ids[start:-1], clean_up_tokenization_spaces=False)
        assert in_nfc(text).strip(" ") == in_nfc(response + AFTER_RESPONSE).strip(" ")
