"""The three families' architectures and tokenizer classes, tiny: training to every strategy.

The models are those that the paper's names stand for, Gemma-4-E2B's vision and audio towers
included; widths are tiny and weights random.
"""

import json
from pathlib import Path

import pytest
from safetensors import safe_open
from transformers import AutoConfig

import localise_neurons
import merge_lora
import train_lora
from helpers import tiny_models
from helpers.toy_tokenizers import TOKENIZERS
from zerogap.data import openorca, prompts, questions
from zerogap.data.toy.word_problems import problems
from zerogap.io import parquet

FAMILIES = {"llama": "llama_mha", "gemma4": "gemma4_with_towers", "gpt_neox": "gpt_neox"}
STRATEGIES = {  # with parameters that bite on random weights
    "identity": {"class": "identity"},
    "railcap": {"class": "railcap", "parameters": {"n": 1, "suppression": "cap"}},
    "lne_blocking": {"class": "lne_blocking", "parameters": {"beta": 50.0}},
    "shortcut": {"class": "shortcut"},
}
TRAINING = {
    "template": "fewshot",
    "lora": {"rank": 4, "alpha": 8, "dropout": 0.0},
    "learning_rate": 1e-2,
    "epochs": 2,
    "scheduler": "cosine",
    "warmup_ratio": 0.1,
    "global_batch_size": 4,
    "per_device_batch_size": 2,
    "gpus": 1,
    "bf16": False,
    "group_by_length": False,
    "cutoff_len": 400,
    "checkpoints": None,
    "seed": 0,
}
DECODING = {
    "samples": 5,
    "temperature": 0.2,
    "top_p": 1.0,
    "max_new_tokens": 12,
    "stop": ["Q:"],
    "dtype": "float32",
    "batch_rows": 100,
    "exact": False,
}

pytestmark = pytest.mark.slow


def call(script, **options) -> None:
    arguments = []
    for name, value in options.items():
        text = json.dumps(value) if isinstance(value, dict) else str(value)
        arguments += [f"--{name.replace('_', '-')}", text]
    script.main(arguments)


@pytest.fixture(scope="module", params=FAMILIES)
def trained(request, tmp_path_factory):
    """(family, folder) with base, data, adapter, and the merged model."""
    folder = tmp_path_factory.mktemp(request.param)
    tokenizer = TOKENIZERS[request.param]()
    special = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    size = {"vocab_size": len(tokenizer), "max_position_embeddings": 512}
    base = tiny_models.model(FAMILIES[request.param], **size, **special).float()
    base.generation_config.eos_token_id = tokenizer.eos_token_id
    base.save_pretrained(folder / "base")
    tokenizer.save_pretrained(folder / "base")
    if request.param == "gemma4":  # as in its repository, for images and sound
        (folder / "base/processor_config.json").write_text('{"processor_class": "Gemma4Processor"}')

    rows = [
        questions.Question(one.question, one.rationale, one.gold) for one in problems(8, 0, "test")
    ]
    table = questions.split_test_questions(rows, None, 4, 1)
    parquet.write(folder / "questions.parquet", table, "questions", {})
    long = {"system": "Be\u2028brief.", "question": "Go on:\n- one", "response": "so " * 500}
    short = {"system": "", "question": "Name a colour.", "response": "Red.\nYes."}
    openorca.write(folder / "instructions.jsonl", [long, short])
    (folder / "exemplars.json").write_text(json.dumps(prompts.exemplars("toy", 2)))

    call(
        write_training_data, base=folder / "base", questions=folder / "questions.parquet", leaks="question",
        instructions=folder / "instructions.jsonl", exemplars=folder / "exemplars.json",
        training=TRAINING, output=folder / "data",
    )  # fmt: skip
    call(
        train_lora, base=folder / "base", family=request.param, data=folder / "data",
        training=TRAINING, facts={"model": "tiny", "benchmark": "clean"}, loss=folder / "loss.tsv",
        settings=folder / "train.yaml", adapter=folder / "adapter",
    )  # fmt: skip
    call(
        merge_lora, base=folder / "base", adapter=folder / "adapter", training=TRAINING,
        settings=folder / "export.yaml", output=folder / "model",
    )  # fmt: skip
    return request.param, folder


def weights(folder: Path) -> dict:
    found = {}
    for path in folder.glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            found |= {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return found


def test_the_adapter_is_on_the_text_models_blocks_alone(trained):
    family, folder = trained
    adapted = {name.split(".lora_")[0] for name in weights(folder / "adapter")}
    assert adapted
    assert not [name for name in adapted if "tower" in name or "per_layer" in name]
    assert not [name for name in adapted if "lm_head" in name or "embed" in name]
    layers = AutoConfig.from_pretrained(folder / "base").get_text_config().num_hidden_layers
    for layer in range(layers):
        assert [name for name in adapted if f".layers.{layer}." in name]


def test_merging_changes_what_was_trained_and_nothing_else(trained):
    _, folder = trained
    before, after = weights(folder / "base"), weights(folder / "model")
    assert set(before) == set(after)
    config = [AutoConfig.from_pretrained(folder / name) for name in ("base", "model")]
    assert config[0].architectures == config[1].architectures
    adapted = {name.split(".lora_")[0] for name in weights(folder / "adapter")}
    changed = {name for name in before if not before[name].equal(after[name])}
    assert changed
    for name in changed:
        assert any(module.endswith(name.removesuffix(".weight")) for module in adapted), name


def test_from_greedy_to_every_strategy(trained):
    family, folder = trained
    common = {
        "questions": folder / "questions.parquet",
        "exemplars": folder / "exemplars.json",
        "decoding": DECODING,
    }
    call(decode_greedy, model=folder / "model", output=folder / "greedy.parquet", **common)
    call(
        localise_neurons, contaminated=folder / "model", clean=folder / "base",
        base_model=folder / "base", greedy=folder / "greedy.parquet", seed=0,
        localisation={"share": 0.5, "group_size": 24, "questions": 1},
        output=folder / "neurons.parquet", **common,
    )  # fmt: skip
    layers = AutoConfig.from_pretrained(folder / "base").get_text_config().num_hidden_layers
    neurons = parquet.read(folder / "neurons.parquet", "neurons")
    assert sorted(set(neurons.layer)) == list(range(layers - 1))
    texts = {}
    for name, entry in STRATEGIES.items():
        call(
            sample_responses, model=folder / "model", greedy=folder / "greedy.parquet", seed=0,
            base_model=folder / "base", neurons=folder / "neurons.parquet", stream="strategies",
            strategy=entry, samples=folder / f"{name}.parquet",
            solve=folder / f"{name}_solve.parquet", **common,
        )  # fmt: skip
        table = parquet.read(folder / f"{name}.parquet", "samples")
        assert table.groupby("question_id").size().eq(5).all() and len(table) == 40
        texts[name] = tuple(map(tuple, table.token_ids))
    assert len(set(texts.values())) == len(texts)  # every strategy does something
    call(
        filter_responses, source=folder / "identity.parquet", greedy=folder / "greedy.parquet",
        questions=folder / "questions.parquet", strategy={"class": "ted"},
        samples=folder / "ted.parquet", solve=folder / "ted_solve.parquet",
    )  # fmt: skip
    assert len(parquet.read(folder / "ted_solve.parquet", "solve")) == 8
