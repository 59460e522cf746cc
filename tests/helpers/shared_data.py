"""Data that tests use where it is available, and skip without it."""

import os
from pathlib import Path

import pytest

from helpers.paths import ROOT

# GSM8K as published by OpenAI: train.jsonl and test.jsonl.
GSM8K = Path(os.environ.get("ZEROGAP_GSM8K", ROOT.parent / "shared/data/gsm8k"))
# One folder per tokenizer, as saved by save_pretrained.
TOKENIZERS = Path(os.environ.get("ZEROGAP_TOKENIZERS", ROOT.parent / "shared/tokenizers"))
# Texts and logs with the right answers.
CASES = Path(os.environ.get("ZEROGAP_CASES", ROOT.parent / "shared/cases"))

needs_gsm8k = pytest.mark.skipif(
    not (GSM8K / "test.jsonl").is_file(),
    reason="GSM8K is not available; set ZEROGAP_GSM8K to its folder",
)

needs_cases = pytest.mark.skipif(
    not CASES.is_dir(), reason="the cases are not available; set ZEROGAP_CASES to their folder"
)
