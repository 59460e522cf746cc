"""Preflight against a local server that answers as the hub does."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from helpers.configurations import PAPER, nested
from helpers.fake_hub import BROKEN, LIMITED, FakeHub
from helpers.paths import ROOT
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


class Hub(BaseHTTPRequestHandler):
    """What the hub answers about five repositories."""

    def do_GET(self):
        path = self.path.partition("?")[0]
        if path.endswith("auth-check"):
            error = "GatedRepo" if "llama" in path else "RepoNotFound" if "gone" in path else None
            return self.answer({}, error, 403 if error == "GatedRepo" else 404)
        if "/revision/" in path:
            error = "RevisionNotFound" if path.endswith("/revision/lost") else None
            weights = "model.bin" if "old" in path else "model.safetensors"
            return self.answer({"id": "x/y", "siblings": [{"rfilename": weights}]}, error)
        if path.endswith("tokenizer_config.json"):
            settings = {} if "pythia" in path else {"eos_token": "<eos>"}
            return self.answer(settings, headers={"ETag": '"1"', "X-Repo-Commit": "1" * 40})
        return self.answer({}, "EntryNotFound")

    do_HEAD = do_GET  # noqa: N815

    def answer(self, content, error=None, code=404, headers=()):
        body = json.dumps(content).encode()
        self.send_response(code if error else 200)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        if error:
            self.send_header("X-Error-Code", error)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def hub():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def preflight(tmp_path):
    """Exit code and output of the checks in a process of their own, which uses another hub."""

    def run(endpoint, **overlay):
        path = tmp_path / "overlay.yaml"
        path.write_text(json.dumps(nested({k.replace("__", "."): v for k, v in overlay.items()})))
        environment = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith("HF_") and key != "DEEPSEEK_API_KEY"
        }
        environment |= {
            "PYTHONPATH": str(ROOT / "workflow"),
            "HF_ENDPOINT": endpoint,
            "HF_HOME": str(tmp_path / "home"),
            "NO_PROXY": "127.0.0.1",
            "PATH": "",  # no nvidia-smi
        }
        process = subprocess.run(
            [sys.executable, "-c", RUN_CHECKS, *PAPER, path],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        return process.returncode, process.stdout + process.stderr

    return run


def test_access_licence_and_revision_are_checked(preflight, hub):
    old = {"label": "Old", "family": "llama", "base": "someone/old", "revision": "main"}
    code, output = preflight(
        hub,
        instructions__hub__repository="someone/gone",
        benchmarks__gsm8k__questions__hub__revision="lost",
        models__old=old,
        models__far=old | {"base": "far/away", "label": "Far"},
    )
    assert code != 0
    assert "Traceback" not in output
    for text in (
        "models.llama2: 'meta-llama/Llama-2-7b-hf' is gated, and your login has no access; accept "
        f"its licence on {hub}/meta-llama/Llama-2-7b-hf",
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
    code, output = preflight(
        hub,
        benchmarks__pq__paraphrases__method="rules",
        models__llama2=None,
        models__pythia=None,
        primary_setting__model="gemma",
    )
    assert code == 0, output
    config = load(PAPER)
    for key, repository, revision in (
        ("models.gemma", "google/gemma-4-E2B", config.models["gemma"].revision),
        (
            "benchmarks.gsm8k.questions",
            "openai/gsm8k",
            config.benchmarks["gsm8k"].questions.hub.revision,
        ),
    ):
        assert f"ok       hub, {key}: '{repository}' at '{revision}' can be read" in output


def test_a_hub_that_limits_requests_is_reported_once_with_the_time_to_wait(preflight):
    with FakeHub({}).running() as limited:
        limited.failures = {"api": [LIMITED] * 20}
        code, output = preflight(limited.endpoint)
    assert code != 0
    assert output.count("FAILED   hub") == 1
    assert "FAILED   hub: the hub limits your requests for 'meta-llama/Llama-2-7b-hf'" in output
    assert "wait 1 seconds and run the same command again, or log in with" in output


def test_a_hub_that_fails_is_reported_once(preflight):
    with FakeHub({}).running() as broken:
        broken.failures = {"api": [BROKEN] * 20}
        code, output = preflight(broken.endpoint)
    assert code != 0
    assert output.count("FAILED   hub") == 1
    assert "the hub fails for 'meta-llama/Llama-2-7b-hf' (HTTP 503)" in output


def test_a_hub_that_does_not_answer_is_reported_once(preflight):
    code, output = preflight("http://127.0.0.1:9")
    assert code != 0
    answer = "http://127.0.0.1:9 does not answer for 'meta-llama/Llama-2-7b-hf'"
    assert output.count(answer) == 1
    assert output.count("FAILED   hub") == 1
