"""Preflight against a local server that answers as the hub does."""

import json

import pytest

from helpers import fake_hub
from helpers.configurations import PAPER, nested
from helpers.fake_hub import BROKEN, LIMITED, FakeHub
from helpers.scripts import python
from zerogap.config import load

RUN_CHECKS = """
import sys
from zerogap.config import load
from zerogap.errors import InputError
from zerogap.pipeline.preflight import run_checks

try:
    print(*run_checks(load(sys.argv[1:])), sep="\\n")
except InputError as error:
    sys.exit(str(error))
"""
FILES = {
    "config.json": b'{"model_type": "llama"}',
    "tokenizer_config.json": b'{"eos_token": "<eos>"}',
    "model.safetensors": b"no header of a weights file",
}
ONLY_GEMMA = {
    "benchmarks.pq.paraphrases.method": "rules",
    "models": {"llama2": None, "pythia": None},
    "primary_setting.model": "gemma",
}


@pytest.fixture
def hub():
    with FakeHub(FILES).running() as hub:
        yield hub


@pytest.fixture
def preflight(tmp_path):
    """Exit code and output of the checks in a process of their own, which uses another hub."""

    def run(endpoint, overlay=()):
        path = tmp_path / "overlay.yaml"
        path.write_text(json.dumps(nested(dict(overlay))))
        env = fake_hub.environment(endpoint, tmp_path / "home") | {"PATH": ""}  # no nvidia-smi
        process = python("-c", RUN_CHECKS, *PAPER, path, cwd=tmp_path, env=env)
        output = process.stdout + process.stderr
        assert "Traceback" not in output
        return process.returncode, output

    return run


def test_access_licence_and_revision_are_checked(preflight, hub):
    hub.errors = {
        "Llama-2-7b-hf/auth-check": (403, "GatedRepo"),
        "gone/auth-check": (404, "RepoNotFound"),
        "/revision/lost": (404, "RevisionNotFound"),
    }
    hub.other_files = {"someone/old": {"model.bin": b""}}
    hub.other_files["pythia"] = FILES | {"tokenizer_config.json": b"{}"}
    old = {"label": "Old", "family": "llama", "base": "someone/old", "revision": "main"}
    code, output = preflight(
        hub.endpoint,
        {
            "instructions.hub.repository": "someone/gone",
            "benchmarks.gsm8k.questions.hub.revision": "lost",
            "models.old": old,
            "models.far": old | {"base": "far/away", "label": "Far"},
        },
    )
    assert code != 0
    for text in (
        "models.llama2: 'meta-llama/Llama-2-7b-hf' is gated, and your login has no access; accept "
        f"its licence on {hub.endpoint}/meta-llama/Llama-2-7b-hf",
        "models.old: 'someone/old' at 'main' has no safetensors weights",
        "benchmarks.gsm8k.questions: 'openai/gsm8k' has no revision 'lost'",
        "instructions: 'someone/gone' is neither a local folder nor on the hub",
        "tokenizer of pythia: it has no end token",
        "weights of far: far/away: its size cannot be read from the hub",
        "API key: DEEPSEEK_API_KEY",
    ):
        assert text in output
    assert "gemma:" not in output


def test_a_hub_that_allows_everything_passes(preflight, hub):
    code, output = preflight(hub.endpoint, ONLY_GEMMA)
    assert code == 0, output
    config = load(PAPER)
    questions = config.benchmarks["gsm8k"].questions.hub
    for key, repository, revision in (
        ("models.gemma", "google/gemma-4-E2B", config.models["gemma"].revision),
        ("benchmarks.gsm8k.questions", "openai/gsm8k", questions.revision),
    ):
        assert f"ok       hub, {key}: '{repository}' at '{revision}' can be read" in output


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (LIMITED, "hub: the hub limits your requests for 'google/gemma-4-E2B' (HTTP 429); wait 1"),
        (BROKEN, "hub: the hub fails for 'google/gemma-4-E2B' (HTTP 503)"),
        (None, "hub: http://127.0.0.1:9 does not answer for 'google/gemma-4-E2B'"),
    ],
)
def test_a_hub_that_cannot_be_asked_is_reported_once(preflight, hub, failure, message):
    hub.failures = {"api": [failure] * 20}
    code, output = preflight(hub.endpoint if failure else "http://127.0.0.1:9", ONLY_GEMMA)
    assert code != 0
    assert output.count("FAILED   hub") == 1
    assert f"FAILED   {message}" in output
