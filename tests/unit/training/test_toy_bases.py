"""Bases from scratch: shapes, schedule, resuming, and what is left in the folder."""

import hashlib
import itertools
import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from zerogap.families import FAMILIES
from zerogap.training.toy import bases, pretraining
from zerogap.training.toy.corpus import Corpus, Tokens, blocks

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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zerogap.training.toy.corpus.PART", 300)
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
    assert not folder.with_name("base.work").exists()


def test_gemma_keeps_what_makes_it_gemma() -> None:
    tokenizer = bases.tokenizers.train(["one two"], "gemma4", 300, 256)
    config = bases.configuration("gemma4", tokenizer, SETTINGS)
    model = AutoModelForCausalLM.from_config(config)
    assert config.layer_types == ["sliding_attention", "full_attention"] * 2
    assert config.num_kv_shared_layers == 2
    assert config.sliding_window < SETTINGS["sequence_length"]
    assert any("per_layer" in name for name, _ in model.named_parameters())


def test_the_rate_warms_up_and_decays() -> None:
    rates = [pretraining.learning_rate(step, 100, 2.0, 0.1) for step in range(100)]
    assert rates[:10] == pytest.approx([0.2 * (step + 1) for step in range(10)])
    assert all(a > b for a, b in itertools.pairwise(rates[10:]))
    assert 0.02 <= rates[-1] < 0.03


def train(settings, checkpoint):
    """A tiny Llama trained on the corpus: the model and its progress."""
    corpus = Corpus(0, 0.0)
    texts = itertools.islice(corpus.documents(0), 300)
    tokenizer = bases.tokenizers.train(texts, "llama", 500, 256)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(bases.configuration("llama", tokenizer, settings))

    def blocks_from(place):
        return blocks(Tokens(corpus, tokenizer), 2, 96, place)

    return model, pretraining.train(model, blocks_from, settings, checkpoint)


def test_training_lowers_the_loss(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("zerogap.training.toy.corpus.PART", 300)
    _, progress = train(SETTINGS | {"steps": 25}, tmp_path / "checkpoint.pt")
    assert [row.step for row in progress.curve] == list(range(1, 26))
    assert progress.curve[-1].loss < progress.curve[0].loss - 1
    assert not (tmp_path / "checkpoint.pt").exists()  # none was asked for


def test_a_processor_without_bfloat16_trains_in_float32(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("zerogap.training.toy.corpus.PART", 300)
    monkeypatch.setattr("zerogap.training.toy.pretraining.bfloat16", lambda device: False)
    _, progress = train(SETTINGS | {"steps": 25}, tmp_path / "checkpoint.pt")
    assert progress.curve[-1].loss < progress.curve[0].loss - 1


def test_from_a_checkpoint_on_it_ends_as_an_undisturbed_one(tmp_path, monkeypatch) -> None:
    """Every part of the state tells: weights, both optimisers, place in the text, curve."""
    monkeypatch.setattr("zerogap.training.toy.corpus.PART", 20)  # a few steps to a part
    settings = SETTINGS | {"steps": 20, "checkpoints": 8}
    checkpoint = tmp_path / "checkpoint.pt"
    whole, expected = train(settings, checkpoint)
    assert torch.load(checkpoint)["progress"][0] == 16
    again, found = train(settings, checkpoint)
    assert found.place == expected.place > (1, 0)
    for one, other in zip(expected.curve, found.curve, strict=True):
        assert one[:3] == other[:3]
    for one, other in zip(whole.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_torn_checkpoint_is_named_and_left(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("zerogap.training.toy.corpus.PART", 300)
    checkpoint = tmp_path / "checkpoint.pt"
    settings = SETTINGS | {"checkpoints": 2}
    _, expected = train(settings, checkpoint)
    checkpoint.write_bytes(checkpoint.read_bytes()[:-1000])
    capsys.readouterr()
    _, found = train(settings, checkpoint)
    said = capsys.readouterr().out
    assert "checkpoint.pt: it cannot be read" in said
    assert "begins anew" in said
    assert [row.loss for row in found.curve] == [row.loss for row in expected.curve]
