"""The failures of a dress rehearsal; test_architectures.py has the rehearsals that pass."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import published_models
from helpers.configurations import PAPER, overlaid
from helpers.paths import ROOT
from zerogap.config import load
from zerogap.pipeline import rehearsal


@pytest.fixture
def config(tmp_path, monkeypatch):
    """The paper's configuration with one model, in the folder `base`, and two shots."""
    monkeypatch.chdir(tmp_path)
    overlay = {
        "models": {"gemma": None, "pythia": None},
        "models.llama2": {"family": "auto", "base": "base", "revision": None},
        "benchmarks.gsm8k.prompt": {"exemplars": "toy", "num_shots": 2},
        "offline": True,
        "ablation": dict.fromkeys(load(PAPER).ablation),
    }
    return lambda **changes: overlaid(PAPER, overlay | changes)


def rehearse(config):
    return list(rehearsal.rehearse(config, Path("rehearsal")))


def test_a_base_that_is_nowhere_is_one_clear_line(config):
    (result,) = rehearse(config())
    assert result.status == rehearsal.FAILED
    assert str(result).startswith(
        "FAILED   llama2, tokenizer: models.llama2.base: 'base' is not a local folder, not in the "
        "hub's cache and cannot be downloaded ("
    )
    assert "\n" not in str(result)


def test_a_failure_names_model_stage_and_fix_and_ends_the_model(config):
    published_models.write_folder("qwen2", Path("base"))
    *passed, failure = rehearse(config(**{"training.cutoff_len": 64}))
    assert [result.stage for result in passed] == ["tokenizer", "model"]
    assert (failure.status, failure.model, failure.stage) == ("FAILED", "llama2", "data")
    assert "training.cutoff_len is 64; raise it or use fewer shots" in failure.text
    assert "InputError" in Path("rehearsal/llama2/rehearsal.log").read_text()


@pytest.mark.parametrize("in_own_file", [False, True])
def test_a_chat_model_is_refused_unless_its_template_is_ignored(config, in_own_file):
    published_models.write_folder("qwen2", Path("base"))
    if in_own_file:
        Path("base/chat_template.jinja").write_text("{{ messages }}")
    else:
        path = Path("base/tokenizer_config.json")
        settings = json.loads(path.read_text()) | {"chat_template": "{{ messages }}"}
        path.write_text(json.dumps(settings))
    (refused,) = rehearse(config())
    assert refused.status == rehearsal.FAILED
    assert "set models.llama2.chat_template: ignore" in refused.text
    first = next(
        rehearsal.rehearse(config(**{"models.llama2.chat_template": "ignore"}), Path("rehearsal"))
    )
    assert first.status == rehearsal.OK


def test_a_tokenizer_larger_than_the_model_is_refused(config):
    published_models.write_folder("qwen2", Path("base"))
    path = Path("base/config.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"vocab_size": 300}))
    (result,) = rehearse(config())
    assert "tokens, but the model only 300" in result.text


def test_the_command_prints_the_failure_and_exits_with_1(tmp_path):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("offline: true\nmodels: { llama2: { base: nowhere, revision: null } }\n")
    command = [sys.executable, "-m", "zerogap", "rehearse", "--models", "llama2", "--config"]
    process = subprocess.run(
        [*command, ROOT / "config.yaml", overlay],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT / "workflow"), "HOME": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 1
    assert process.stdout.startswith("FAILED   llama2, tokenizer: ")
    assert process.stdout.endswith("1 of 1 models failed\n")
