"""What a rehearsal says of models that are decoded slowly."""

from pathlib import Path

import pytest

from helpers.tiny_models import model
from zerogap.engine import loading
from zerogap.engine.hf_decoder import HFDecoder
from zerogap.pipeline import rehearse


@pytest.fixture
def said(monkeypatch, capsys):
    """What the engine says of a model that its cache of shared prompts does not fit."""

    def unfit(*_, **__):
        raise NotImplementedError("layers of another kind")

    monkeypatch.setattr(loading, "SharedPromptDecoder", unfit)
    monkeypatch.setattr(loading, "fits_shared_prompt_decoder", lambda _: False, raising=False)
    assert isinstance(loading.decoder(model("llama")), HFDecoder)
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("overlay", "fails"),
    [
        ({}, True),
        ({"sampling__dtype": "float32"}, False),
        ({"training__device": "cpu"}, False),
    ],
)
def test_slow_decoding_fails_a_rehearsal_where_gpus_are_expected(
    paper, in_empty_checkout, said, overlay, fails
):
    for name in ("decode_greedy", "cells/identity/sample_responses"):
        log = Path("results/paper_rehearsal/logs/gemma/gsm8k", f"{name}.log")
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"something else\n{said}")
    found = rehearse.slow_decoding(paper(**overlay))
    assert found == ([said.strip()] if fails else [])
