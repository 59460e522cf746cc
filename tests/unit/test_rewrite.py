import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from zerogap.data import rewrite as module
from zerogap.data.rewrite import SYSTEM_PROMPT, rewrite
from zerogap.errors import InputError

KEY = "sk-very-secret"
QUESTIONS = {
    f"test-{i:04d}": f"Tom had {i} red apples in a bag and ate 3 of them. How many are left?"
    for i in range(20, 26)
}


def good(question):
    number = question.split()[2]
    return f"New Question: After eating 3 apples from his {number}, what does Tom still have?"


class Service:
    """A chat endpoint on this machine; `behave(question, nth)` gives a status and a reply."""

    def __init__(self, behave):
        service = self
        self.asked, self.bodies, self.lock = Counter(), [], threading.Lock()
        self.running = self.most = 0

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                question = body["messages"][-1]["content"]
                with service.lock:
                    service.asked[question] += 1
                    service.bodies.append((self.path, self.headers["Authorization"], body))
                    service.running += 1
                    service.most = max(service.most, service.running)
                    nth = service.asked[question]
                status, reply = behave(question, nth)
                with service.lock:
                    service.running -= 1
                data = json.dumps(reply if status == 200 else {"error": {"message": KEY}}).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def completion(*contents):
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {
                "index": i,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": content},
            }
            for i, content in enumerate(contents)
        ],
    }


@pytest.fixture
def serve(monkeypatch):
    monkeypatch.setenv("ZEROGAP_TEST_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(module, "_RETRIES", 1)
    services = []

    def start(behave):
        services.append(Service(behave))
        return services[-1]

    yield start
    for service in services:
        service.server.shutdown()
        service.server.server_close()


def call(service, journal, questions=QUESTIONS, **changed):
    options = {
        "base_url": service.url,
        "model": "m",
        "api_key_env": "ZEROGAP_TEST_KEY",
        "concurrency": 3,
        "tries": 3,
    }
    return rewrite(questions, journal, **{**options, **changed})


def test_a_well_behaved_service(serve, tmp_path):
    service = serve(lambda question, nth: (200, completion(good(question))))
    found = call(service, tmp_path / "journal.jsonl")
    assert found == {i: good(text).removeprefix("New Question: ") for i, text in QUESTIONS.items()}
    path, authorization, body = service.bodies[0]
    assert path == "/chat/completions" and authorization == f"Bearer {KEY}"
    assert body["messages"][0] == {"role": "system", "content": SYSTEM_PROMPT}
    assert service.most <= 3


@pytest.mark.parametrize(
    "bad",
    [
        (500, None),
        (200, completion()),
        (200, completion(None)),
        (200, completion("New Question: one line\nand another with 20 and 3")),
        (200, completion("New Question: How many apples are still there for him?")),
        (200, completion("Tom ate from the bag.")),
        (200, completion("New Question: Tom ate. #### 17")),
    ],
)
def test_bad_replies_are_asked_again(serve, tmp_path, bad):
    service = serve(lambda q, nth: bad if nth == 1 else (200, completion(good(q))))
    found = call(service, tmp_path / "journal.jsonl")
    assert set(found) == set(QUESTIONS)
    assert set(service.asked.values()) == {2}


def test_an_unchanged_question_is_no_paraphrase(serve, tmp_path):
    service = serve(lambda q, nth: (200, completion(f"New Question: {q}")))
    with pytest.raises(InputError, match="hardly reworded"):
        call(service, tmp_path / "journal.jsonl")


def test_invalid_ones_are_listed_and_the_rest_is_kept(serve, tmp_path):
    journal = tmp_path / "journal.jsonl"
    bad = serve(lambda q, nth: (200, completion("New Question: no" if " 22 " in q else good(q))))
    with pytest.raises(InputError, match=r"1 of 6 questions .*\n  test-0022: missing numbers: 22"):
        call(bad, journal)
    assert bad.asked[QUESTIONS["test-0022"]] == 3
    well = serve(lambda q, nth: (200, completion(good(q))))
    assert len(call(well, journal)) == 6
    assert list(well.asked) == [QUESTIONS["test-0022"]]


def test_a_killed_run_pays_nothing_twice(serve, tmp_path):
    journal = tmp_path / "journal.jsonl"
    service = serve(lambda q, nth: (200, completion(good(q))))
    call(service, journal)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:3]) + lines[3][:20])  # killed in the fourth line
    again = serve(lambda q, nth: (200, completion(good(q))))
    assert len(call(again, journal)) == 6
    assert again.asked.total() == 3
    assert len(journal.read_text().splitlines()) == 6


def test_another_model_is_asked_anew(serve, tmp_path):
    journal = tmp_path / "journal.jsonl"
    service = serve(lambda q, nth: (200, completion(good(q))))
    call(service, journal)
    call(service, journal, model="other")
    assert service.asked.total() == 12


@pytest.mark.parametrize("status", [401, 404])
def test_a_refusal_ends_it_and_tells_no_key(serve, tmp_path, status, capsys):
    service = serve(lambda q, nth: (status, None))
    with pytest.raises(InputError, match=f"status {status}") as caught:
        call(service, tmp_path / "journal.jsonl", concurrency=1)
    assert service.asked.total() < len(QUESTIONS)
    written = capsys.readouterr()
    assert KEY not in str(caught.value) + written.out + written.err


def test_the_key_is_needed(serve, tmp_path, monkeypatch):
    monkeypatch.delenv("ZEROGAP_TEST_KEY")
    service = serve(lambda q, nth: (200, completion(good(q))))
    with pytest.raises(InputError, match="ZEROGAP_TEST_KEY is not set"):
        call(service, tmp_path / "journal.jsonl")


def test_the_key_is_not_in_the_journal(serve, tmp_path):
    call(serve(lambda q, nth: (200, completion(good(q)))), tmp_path / "journal.jsonl")
    assert KEY not in (tmp_path / "journal.jsonl").read_text()
