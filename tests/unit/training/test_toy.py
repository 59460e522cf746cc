"""The toy bases: tokenizers, text, training, and those in workflow/resources/bases."""

import hashlib
import itertools
import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer

from helpers.paths import ROOT
from zerogap.training import toy

TEXTS = list(itertools.islice(toy.documents(), 150))
TOKENIZERS = {name: toy.train_tokenizer(TEXTS, name, 600) for name in toy.BASES}
names = pytest.mark.parametrize("name", TOKENIZERS)


@names
@settings(max_examples=50, deadline=None)
@given(text=st.text(max_size=80), number=st.integers(0, 10**9))
def test_any_text_is_decoded_and_each_digit_is_a_token(name, text, number):
    tokenizer = TOKENIZERS[name]
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids, clean_up_tokenization_spaces=False) == text
    assert tokenizer.tokenize(f"has {number} in")[-1 - len(str(number)) : -1] == list(str(number))


@pytest.mark.parametrize(
    ("name", "bos", "eos"),
    [("llama2", "<s>", "</s>"), ("gemma", "<bos>", "<eos>"), ("pythia", "", "<|endoftext|>")],
)
def test_llama_and_gemma_begin_with_bos(name, bos, eos):
    tokenizer = TOKENIZERS[name]
    ids = tokenizer("Q: one")["input_ids"]
    assert tokenizer(bos + "Q: one", add_special_tokens=False)["input_ids"] == ids
    assert tokenizer.eos_token == eos


@pytest.fixture(scope="module", params=list(toy.BASES))
def made(request, tmp_path_factory):
    """A base after a few steps."""
    folder = tmp_path_factory.mktemp("bases") / request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy, "TOKENIZER_DOCUMENTS", 150)
        toy.pretrain(request.param, folder, max_steps=12)
    return folder


def test_a_base_is_trained_and_loads_as_float32(made):
    tokenizer, model = (
        auto.from_pretrained(made) for auto in (AutoTokenizer, AutoModelForCausalLM)
    )
    metadata = json.loads((made / "provenance.json").read_text())
    assert metadata["final_loss"] < 6.6  # of a uniform guess: 6.7
    assert model.dtype == torch.float32
    logits = model(**tokenizer("Q: How many?\nA:", return_tensors="pt")).logits
    assert logits.isfinite().all()
    assert logits.shape[-1] == len(tokenizer)


def test_the_shipped_bases_are_small_and_have_the_hash_in_their_provenance():
    provenances = list((ROOT / "workflow/resources/bases").glob("*/provenance.json"))
    assert {path.parent.name for path in provenances} == set(toy.BASES)
    for path in provenances:
        weights = path.with_name("model.safetensors").read_bytes()
        assert hashlib.sha256(weights).hexdigest() == json.loads(path.read_text())["weights_sha256"]
        assert sum(file.stat().st_size for file in path.parent.iterdir()) < 7e6 / 3  # 7 MB for all
