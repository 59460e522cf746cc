"""The rule that asks a language model never stores the API key."""

import json
import threading
import types
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from helpers.dry_runs import link_checkout, snakemake
from zerogap.data.paraphrases.rules import paraphrase

KEY = "sk-never-to-be-seen"
ENVIRONMENT = {"ZEROGAP_TEST_KEY": KEY, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}


@pytest.fixture
def endpoint() -> Iterator[types.SimpleNamespace]:
    """An endpoint that refuses requests, and quotes the key, until it is `open`."""
    served = types.SimpleNamespace(authorisations=[], open=False)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            served.authorisations.append(self.headers["Authorization"])
            question = body["messages"][1]["content"]
            status, reply = 401, {"error": {"message": f"{KEY} is not valid"}}
            if served.open:
                text = f"New Question: {paraphrase(question, 1)}"
                message = {"role": "assistant", "content": text}
                choice = {"index": 0, "finish_reason": "stop", "message": message}
                status, reply = 200, {"id": "1", "model": "m", "choices": [choice]}
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


def test_the_api_key_is_in_no_file_of_a_run(tmp_path, endpoint):
    link_checkout(tmp_path)
    chat = {"base_url": endpoint.url, "model": "m", "api_key_env": "ZEROGAP_TEST_KEY"}
    chat |= {"concurrency": 1, "max_attempts": 5}
    sizes = {"num_test": 8, "num_leaked": 4, "num_train": 4}
    benchmarks = {
        "gsm8k": sizes | {"questions": {"generated": {"num_test": 8, "num_train": 4}}},
        "pq": {"paraphrases": {"method": "chat", "chat": chat}},
    }
    (tmp_path / "chat.yaml").write_text(json.dumps({"run": "chat", "benchmarks": benchmarks}))
    call = ["--profile", "profiles/quick", "--no-hooks"]
    call += ["--configfile", "profiles/quick/quick.yaml", "chat.yaml"]
    call += ["--", "results/chat/data/pq/questions.parquet"]
    refused = snakemake(*call, workdir=tmp_path, env=ENVIRONMENT)
    assert refused.returncode != 0
    log = tmp_path / "results/chat/logs/data/pq/paraphrase_questions.log"
    assert "refuses requests to 'm' with status 401" in log.read_text()
    endpoint.open = True
    answered = snakemake(*call, workdir=tmp_path, env=ENVIRONMENT)
    assert answered.returncode == 0, answered.stdout + answered.stderr
    assert set(endpoint.authorisations) == {f"Bearer {KEY}"}
    assert "4 of 4 questions to paraphrase" in log.read_text()
    assert "4/4" in log.read_text()

    files = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert any(".snakemake/metadata" in str(path) for path in files)
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    assert KEY not in refused.stdout + refused.stderr + answered.stdout + answered.stderr
