"""The embedded bases: shapes, packing, schedule, a training step and what is left in the folder."""

import hashlib
import itertools
import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from zerogap.training import bases
from zerogap.training.families import FAMILIES

SETTINGS = {
    "seed": 0,
    "vocabulary": 500,
    "width": 32,
    "layers": 4,
    "feed_forward": 48,
    "steps": 3,
    "batch_size": 2,
    "sequence_length": 96,
    "learning_rate": 0.004,
    "warmup_ratio": 0.03,
    "instruction_share": 0.12,
}


@pytest.fixture(scope="module", params=list(FAMILIES))
def made(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param) / "base"
    bases.pretrain(request.param, SETTINGS, folder, "a test")
    return request.param, folder


def test_a_base_loads_as_float32_and_predicts(made) -> None:
    family, folder = made
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert model.dtype == torch.float32
    assert type(model).__name__.lower().startswith(family.replace("_", ""))
    logits = model(**tokenizer("Q: How many?\nA:", return_tensors="pt")).logits
    assert logits.isfinite().all()
    assert logits.shape[-1] == len(tokenizer)


def test_provenance_has_the_hash_and_the_command(made) -> None:
    _, folder = made
    facts = json.loads((folder / "provenance.json").read_text())
    weights = (folder / "model.safetensors").read_bytes()
    assert facts["weights_sha256"] == hashlib.sha256(weights).hexdigest()
    assert facts["command"] == "a test"
    assert facts["settings"] == SETTINGS
    assert len((folder / "loss.tsv").read_text().splitlines()) == 1 + SETTINGS["steps"]


def test_gemma_keeps_what_makes_it_gemma() -> None:
    tokenizer = bases.tokenizers.train(["one two"], "gemma4", 300, 256)
    config = bases.configuration("gemma4", tokenizer, SETTINGS)
    model = AutoModelForCausalLM.from_config(config)
    assert config.layer_types == ["sliding_attention", "full_attention"] * 2
    assert config.num_kv_shared_layers == 2
    assert config.sliding_window < SETTINGS["sequence_length"]
    assert any("per_layer" in name for name, _ in model.named_parameters())


def test_documents_repeat_with_the_seed_and_hold_both_kinds() -> None:
    first, again, other = (
        list(itertools.islice(bases.documents(seed, 0.3), 200)) for seed in (1, 1, 2)
    )
    assert first == again != other
    assert all(text.endswith("\n\n") for text in first)
    assert 0 < sum("The answer is" not in text for text in first) < 100


def test_blocks_are_the_documents_in_order(made) -> None:
    _, folder = made
    tokenizer = AutoTokenizer.from_pretrained(folder)
    texts = list(itertools.islice(bases.documents(0, 0.12), 400))
    stream = [
        token for ids in tokenizer(texts)["input_ids"] for token in [*ids, tokenizer.eos_token_id]
    ]
    blocks = bases.token_blocks(iter(texts), tokenizer, 2, 50)
    taken = torch.cat([next(blocks).flatten() for _ in range(3)]).tolist()
    assert taken == stream[:300]


def test_the_rate_warms_up_and_decays() -> None:
    rates = [bases.learning_rate(step, 100, 2.0, 0.1) for step in range(100)]
    assert rates[:10] == pytest.approx([0.2 * (step + 1) for step in range(10)])
    assert all(a > b for a, b in itertools.pairwise(rates[10:]))
    assert 0.02 <= rates[-1] < 0.03


def test_training_lowers_the_loss(tmp_path) -> None:
    settings = SETTINGS | {"steps": 25}
    texts = list(itertools.islice(bases.documents(0, 0.0), 300))
    tokenizer = bases.tokenizers.train(texts, "llama", 500, 256)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(bases.configuration("llama", tokenizer, settings))
    blocks = bases.token_blocks(iter(texts), tokenizer, 2, 96)
    bases.train(model, blocks, settings, tmp_path / "loss.tsv")
    lines = (tmp_path / "loss.tsv").read_text().splitlines()[1:]
    losses = [float(line.split("\t")[2]) for line in lines]
    assert losses[-1] < losses[0] - 1
