"""The rule that asks a language model: where it runs, and that its key stays in the environment."""

import json
import os
import subprocess
import sys
import threading
import types
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from helpers.paths import ROOT
from zerogap.data.paraphrases.rules import paraphrase

SNAKEMAKE = Path(sys.executable).with_name("snakemake")
KEY = "sk-never-to-be-seen"


def snakemake(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    for name in ("Snakefile", "config.yaml", "workflow", "profiles", "slurm", "envs"):
        if not (folder / name).exists():
            (folder / name).symlink_to(ROOT / name)
    environment = {"PATH": f"{SNAKEMAKE.parent}:{os.environ['PATH']}", "ZEROGAP_TEST_KEY": KEY}
    return subprocess.run(
        [SNAKEMAKE, *arguments],
        cwd=folder,
        env=os.environ | environment | {"NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )


RULE = """
from pathlib import Path
from snakemake.api import ConfigSettings, OutputSettings, ResourceSettings, SnakemakeApi

with SnakemakeApi(OutputSettings()) as api:
    planned = api.workflow(
        resource_settings=ResourceSettings(),
        config_settings=ConfigSettings(configfiles=[Path("method.yaml")]),
        snakefile=Path("Snakefile"),
    )._workflow
    rule = planned.get_rule("paraphrases")
    print("paraphrases" in planned._localrules, rule.resources["gpu"].value)
"""


@pytest.mark.parametrize(
    ("method", "says"), [("chat", "True 0"), ("rules", "True 0"), ("local", "False 1")]
)
def test_a_local_model_is_a_gpus_work_and_the_endpoint_is_not(tmp_path, method, says):
    paraphrases = {"method": method, "local": {"model": "some/chat-model"}}
    (tmp_path / "method.yaml").write_text(json.dumps({"data": {"paraphrases": paraphrases}}))
    assert snakemake(tmp_path, "-n", "--configfile", "method.yaml").returncode == 0
    done = subprocess.run(
        [sys.executable, "-c", RULE], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1:] == [says], done.stderr


@pytest.fixture
def endpoint():
    """Refuses requests and quotes the key, until it is `open`."""
    served = types.SimpleNamespace(asked=[], open=False)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            served.asked.append(self.headers["Authorization"])
            question = body["messages"][-1]["content"]
            status, reply = 401, {"error": {"message": f"{KEY} is not valid"}}
            if served.open:
                text = f"New Question: {paraphrase(question, 1)}"
                message = {"role": "assistant", "content": text}
                choice = {"index": 0, "finish_reason": "stop", "message": message}
                status, reply = 200, {"id": "1", "choices": [choice]}
            data = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    served.url = f"http://127.0.0.1:{server.server_port}"
    yield served
    server.shutdown()
    server.server_close()


def test_the_key_is_in_no_file_of_a_run(tmp_path, endpoint):
    chat = {
        "base_url": endpoint.url,
        "model": "m",
        "api_key_env": "ZEROGAP_TEST_KEY",
        "concurrency": 1,
    }
    data = {"generated": {"n_test": 8, "n_train": 4}, "n_test": 8, "n_leaked": 4, "n_train": 4}
    data |= {"paraphrases": {"method": "chat", "chat": chat}}
    (tmp_path / "chat.yaml").write_text(json.dumps({"run": "chat", "data": data}))
    call = ["--profile", "profiles/quick", "--configfile", "profiles/quick/quick.yaml"]
    call += ["chat.yaml", "--", "results/chat/data/questions.parquet"]
    refused = snakemake(tmp_path, *call)
    assert refused.returncode != 0
    log = tmp_path / "results/chat/logs/data/paraphrases.log"
    assert "refuses requests to 'm' with status 401" in log.read_text()
    endpoint.open = True
    answered = snakemake(tmp_path, *call)
    assert answered.returncode == 0, answered.stdout + answered.stderr
    assert set(endpoint.asked) == {f"Bearer {KEY}"}
    assert "4 questions to ask: about" in log.read_text()
    assert "4/4" in log.read_text()

    written = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert any(".snakemake/metadata" in str(path) for path in written)
    assert not [path for path in written if KEY.encode() in path.read_bytes()]
    assert KEY not in refused.stdout + refused.stderr + answered.stdout + answered.stderr
