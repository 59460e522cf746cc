"""Toy bases from scratch: shapes, schedule, resuming, contents of the folder."""

import hashlib
import itertools
import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from zerogap.families import FAMILIES, ToySize
from zerogap.training.toy import bases, pretraining
from zerogap.training.toy.corpus import Corpus, TokenisedCorpus, token_blocks

SETTINGS = {
    "seed": 0,
    "vocab_size": 500,
    "hidden_size": 32,
    "num_layers": 4,
    "intermediate_size": 48,
    "max_steps": 3,
    "save_steps": None,
    "batch_size": 2,
    "sequence_length": 96,
    "learning_rate": 0.004,
    "warmup_ratio": 0.03,
    "instruction_fraction": 0.12,
    "problems_per_document": 5,
    "language": "plain",
    "gsm8k_fraction": 0.2,
}


@pytest.fixture(scope="module", params=list(FAMILIES))
def made(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param) / "base"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zerogap.training.toy.corpus.PROBLEMS_PER_PART", 300)
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


def test_the_provenance_has_command_settings_and_hash_of_the_weights(made) -> None:
    _, folder = made
    metadata = json.loads((folder / "provenance.json").read_text())
    weights = (folder / "model.safetensors").read_bytes()
    assert metadata["weights_sha256"] == hashlib.sha256(weights).hexdigest()
    assert metadata["command"] == "a test"
    assert metadata["settings"] == SETTINGS
    assert len((folder / "loss.tsv").read_text().splitlines()) == 1 + SETTINGS["max_steps"]
    assert not folder.with_name("base.work").exists()


def test_the_toy_gemma_has_the_features_of_gemma_4() -> None:
    tokenizer = bases.tokenizers.train(["one two"], "gemma4", 300, 256)
    config = bases.model_config("gemma4", tokenizer, ToySize.of(SETTINGS))
    model = AutoModelForCausalLM.from_config(config)
    assert config.layer_types == ["sliding_attention", "full_attention"] * 2
    assert config.num_kv_shared_layers == 2
    assert config.sliding_window < SETTINGS["sequence_length"]
    assert any("per_layer" in name for name, _ in model.named_parameters())


def test_the_learning_rate_warms_up_and_decays() -> None:
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
    model = AutoModelForCausalLM.from_config(
        bases.model_config("llama", tokenizer, ToySize.of(settings))
    )

    def blocks_from(position):
        return token_blocks(TokenisedCorpus(corpus, tokenizer), 2, 96, position)

    return model, pretraining.train(model, blocks_from, settings, checkpoint)


def test_training_lowers_the_loss(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("zerogap.training.toy.corpus.PROBLEMS_PER_PART", 300)
    _, progress = train(SETTINGS | {"max_steps": 25}, tmp_path / "checkpoint.pt")
    assert [row.step for row in progress.curve] == list(range(1, 26))
    assert progress.curve[-1].loss < progress.curve[0].loss - 1
    assert not (tmp_path / "checkpoint.pt").exists()  # save_steps is None


@pytest.mark.parametrize("supported", [True, False])
def test_a_base_is_trained_in_bfloat16_only_where_supported(
    supported, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr("zerogap.training.toy.corpus.PROBLEMS_PER_PART", 300)
    monkeypatch.setattr(pretraining, "supports_bfloat16", lambda device: supported)
    dtypes, linear = set(), torch.nn.functional.linear

    def watched(*arguments):
        out = linear(*arguments)
        dtypes.add(out.dtype)
        return out

    monkeypatch.setattr(torch.nn.functional, "linear", watched)
    train(SETTINGS | {"max_steps": 1}, tmp_path / "checkpoint.pt")
    assert dtypes == {torch.bfloat16 if supported else torch.float32}


def test_a_resumed_training_ends_like_an_uninterrupted_one(tmp_path, monkeypatch) -> None:
    """Every part of the state matters: weights, optimisers, position in the text, curve."""
    monkeypatch.setattr(
        "zerogap.training.toy.corpus.PROBLEMS_PER_PART", 20
    )  # a few steps to a part
    settings = SETTINGS | {"max_steps": 20, "save_steps": 8}
    checkpoint = tmp_path / "checkpoint.pt"
    uninterrupted, expected = train(settings, checkpoint)
    assert torch.load(checkpoint)["progress"][0] == 16
    resumed, found = train(settings, checkpoint)
    assert found.position == expected.position > (1, 0)
    for one, other in zip(expected.curve, found.curve, strict=True):
        assert one[:3] == other[:3]
    for one, other in zip(uninterrupted.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_damaged_checkpoint_is_named_and_ignored(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("zerogap.training.toy.corpus.PROBLEMS_PER_PART", 300)
    checkpoint = tmp_path / "checkpoint.pt"
    settings = SETTINGS | {"save_steps": 2}
    _, expected = train(settings, checkpoint)
    checkpoint.write_bytes(checkpoint.read_bytes()[:-1000])
    capsys.readouterr()
    _, found = train(settings, checkpoint)
    output = capsys.readouterr().out
    assert "checkpoint.pt: is not readable" in output
    assert "starting over" in output
    assert [row.loss for row in found.curve] == [row.loss for row in expected.curve]
