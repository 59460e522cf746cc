"""Paraphrases by a chat endpoint that misbehaves on purpose."""

import gzip
import json
import logging
import threading
from collections import Counter
from functools import partial
from types import SimpleNamespace

import httpx2
import pytest

import paraphrase_questions
import write_questions
from helpers.scripts import command_line
from script_helpers import run
from zerogap.data.paraphrases import chat
from zerogap.data.paraphrases.chat import SYSTEM_PROMPT, paraphrase_all
from zerogap.data.questions import Question, split_test_questions
from zerogap.errors import InputError
from zerogap.io import parquet

KEY = "sk-very-secret"
QUESTIONS = {
    f"test-{i:04d}": f"Tom had {i} red apples in a bag and ate 3 of them. How many are left?"
    for i in range(20, 26)
}


def good(question):
    number = question.split()[2]
    return f"New Question: After eating 3 apples from his {number}, what does Tom still have?"


class Service:
    """A chat endpoint: `behave(question, nth)` gives status and reply, a response or an error."""

    url = "http://chat.test"

    def __init__(self, behave):
        self.behave, self.requests, self.bodies = behave, Counter(), []

    def answer(self, request):
        body = json.loads(request.content)
        question = body["messages"][1]["content"]
        self.requests[question] += 1
        self.bodies.append((request.url.path, request.headers["Authorization"], body))
        reply = self.behave(question, self.requests[question])
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, httpx2.Response):
            return reply
        status, content = reply
        if status != 200:
            content = {"error": content or {"message": f"{KEY} is over its limit"}}
        headers = {"retry-after-ms": "1", "Location": f"{self.url}/elsewhere"}
        content = content if isinstance(content, bytes) else json.dumps(content)
        return httpx2.Response(status, headers=headers, content=content)


def ended(reason, text):
    reply = completion(text)
    reply["choices"][0]["finish_reason"] = reason
    return reply


def completion(*contents, model="m"):
    return {
        "model": model,
        "system_fingerprint": "fp-7",
        "choices": [{"message": {"role": "assistant", "content": text}} for text in contents],
        "usage": {"prompt_tokens": 70, "completion_tokens": 20},
    }


@pytest.fixture
def serve(monkeypatch):
    """behaviour → the endpoint that every client reaches from now on."""
    monkeypatch.setenv("ZEROGAP_TEST_KEY", KEY)
    monkeypatch.setattr(chat, "MAX_RETRIES", 1)

    def start(behave):
        service = Service(behave)
        client = partial(httpx2.Client, transport=httpx2.MockTransport(service.answer))
        monkeypatch.setattr(chat, "httpx2", SimpleNamespace(**vars(httpx2) | {"Client": client}))
        return service

    return start


def request(service, journal, questions=QUESTIONS, max_attempts=3, **options):
    """The paraphrases and what is wrong with the other replies."""
    ask = partial(chat.chat_endpoint, service.url, "m", "ZEROGAP_TEST_KEY", **options)
    valid, invalid, unanswered = paraphrase_all(
        questions, journal, ask, identity="m", max_attempts=max_attempts, concurrency=3
    )
    return {i: reply["paraphrase"] for i, reply in valid.items()}, invalid | unanswered


def request_valid(service, journal, **options):
    """The paraphrases, one for every question."""
    paraphrases, invalid = request(service, journal, **options)
    assert not invalid
    return paraphrases


def test_the_prompt_options_and_key_are_sent_and_the_replies_parsed(serve, tmp_path, capsys):
    service = serve(lambda question, nth: (200, completion(good(question))))
    options = {"temperature": 0.5, "max_tokens": 64, "thinking": {"type": "disabled"}}
    paraphrases = request_valid(service, tmp_path / "journal.jsonl", request=options)
    assert paraphrases == {
        i: good(text).removeprefix("New Question: ") for i, text in QUESTIONS.items()
    }
    path, authorization, body = service.bodies[0]
    assert path == "/chat/completions"
    assert authorization == f"Bearer {KEY}"
    assert body["messages"][0] == {"role": "system", "content": SYSTEM_PROMPT}
    assert {key: body[key] for key in options} == options
    written = capsys.readouterr()
    first, last = written.out.splitlines()
    assert first == "6 of 6 questions to paraphrase"
    assert last == "used 420 input and 120 output tokens"
    assert "6/6" in written.err


def test_another_model_behind_the_name_stops_the_run_unless_it_is_allowed(serve, tmp_path):
    service = serve(lambda q, nth: (200, completion(good(q), model="m[2]")))
    journal = tmp_path / "journal.jsonl"
    with pytest.raises(InputError, match=r"to 'm' with the model 'm\[2]'; .*served_model: 'm\[2]'"):
        request(service, journal)
    assert not journal.exists()
    for pattern in ("m[2]", "m*", "*"):
        assert len(request_valid(service, journal, served_model=pattern)) == 6
    assert '"served_model": "m[2]", "fingerprint": "fp-7"' in journal.read_text()


@pytest.mark.parametrize(
    "bad",
    [
        (500, None),
        httpx2.ReadTimeout("no answer"),
        httpx2.RemoteProtocolError("cut off"),
        (200, b"<html>Bad gateway</html>"),
        (200, {"id": "1"}),
        (200, b"null"),
        (200, b"[" * 100_000),
        (200, completion() | {"choices": [{"message": None}]}),
        (200, completion() | {"choices": {"0": "text"}}),
        (200, completion(["New Question: a list"])),
        (200, completion("no") | {"usage": None}),
        (200, completion("no") | {"usage": {"prompt_tokens": None, "completion_tokens": "many"}}),
        (200, completion()),
        (200, completion(None)),
        (200, completion("Tom ate from the bag.")),
        (200, completion("New Question: How many apples are still there for him?")),
        (200, completion("New Question: After eating 3 of 20, 21, 22, 23, 24 or 25 \ud83d")),
        (200, ended("length", "New Question: Tom ate 3 of 20, 21, 22, 23, 24 or 25 and")),
    ],
)
def test_an_invalid_reply_is_requested_again(serve, tmp_path, bad):
    service = serve(lambda q, nth: bad if nth == 1 else (200, completion(good(q))))
    paraphrases = request_valid(service, tmp_path / "journal.jsonl")
    assert set(paraphrases) == set(QUESTIONS)
    assert set(service.requests.values()) == {2}


@pytest.mark.parametrize(
    ("content", "encoding", "problem"),
    [
        ([b" " * 100_000] * 30, "identity", "a reply of more than 1,000,000 bytes"),
        ([gzip.compress(b" " * 10**6)], "gzip", "a packed reply, which was not asked for"),
    ],
    ids=["endless", "packed"],
)
def test_a_reply_that_may_fill_the_memory_is_none(serve, tmp_path, content, encoding, problem):
    headers = {"Content-Encoding": encoding}
    service = serve(lambda q, nth: httpx2.Response(200, content=iter(content), headers=headers))
    found, invalid = request(service, tmp_path / "journal.jsonl", max_attempts=1)
    assert (found, set(invalid.values())) == ({}, {problem})


def test_a_model_is_told_what_was_wrong_with_its_reply(serve, tmp_path):
    bad = "New Question: How many of the 9 apples are there?"
    service = serve(lambda q, nth: (200, completion(bad if nth == 1 else good(q))))
    one = dict([next(iter(QUESTIONS.items()))])
    request(service, tmp_path / "journal.jsonl", questions=one)
    first, (*again, reply, correction) = (body["messages"] for _, _, body in service.bodies)
    assert (again, reply) == (first, {"role": "assistant", "content": bad})
    assert correction["role"] == "user"
    assert "missing numbers: 20, 3; added numbers: 9" in correction["content"]


def test_after_a_reply_that_is_not_whole_the_conversation_starts_again(serve, tmp_path):
    replies = ["New Question: no", None, "New Question: no"]
    service = serve(lambda q, nth: (200, completion(replies[nth - 1])))
    request(service, tmp_path / "journal.jsonl", questions=dict([next(iter(QUESTIONS.items()))]))
    first, second, third = (body["messages"] for _, _, body in service.bodies)
    assert len(second) == len(first) + 2
    assert third == first


def test_a_second_run_requests_only_the_questions_without_a_paraphrase(serve, tmp_path):
    """Each of them has its reason, and the replies that came are in the journal."""
    journal = tmp_path / "journal.jsonl"
    failures = {
        "21": (500, None), "22": (429, None), "23": httpx2.ConnectError("no route"),
        "24": (200, completion("New Question: no")),
    }  # fmt: skip
    service = serve(lambda q, nth: failures.get(q.split()[2], (200, completion(good(q)))))
    paraphrases, invalid = request(service, journal, max_attempts=2)
    assert set(paraphrases) == {"test-0020", "test-0025"}
    assert invalid == {
        "test-0021": "status 500 after 1 retries",
        "test-0022": "status 429 after 1 retries",
        "test-0023": "APIConnectionError after 1 retries",
        "test-0024": "missing numbers: 24, 3",
    }
    assert service.requests[QUESTIONS["test-0024"]] == 2
    good_service = serve(lambda q, nth: (200, completion(good(q))))
    assert len(request_valid(good_service, journal)) == 6
    assert set(good_service.requests) == {QUESTIONS[i] for i in invalid}


@pytest.mark.parametrize("status", [301, 302, 307, 308, 401, 404, 405, 410, 413])
def test_a_refusal_and_a_redirect_are_errors(serve, tmp_path, status):
    service = serve(lambda q, nth: (status, None))
    with pytest.raises(InputError, match=f"status {status}"):
        request_valid(service, tmp_path / "journal.jsonl")
    assert all(path == "/chat/completions" for path, _, _ in service.bodies)  # no redirect


def test_a_refusal_stops_the_requests_while_the_first_question_waits(serve, tmp_path):
    questions = {f"test-{k:04}": f"A question number {k} of 3 cakes?" for k in range(60)}
    refused = threading.Event()

    def refuse(question, nth):
        if question == questions["test-0000"]:
            refused.wait(timeout=30)
            return 200, completion("New Question: no")
        refused.set()
        return 401, None

    service = serve(refuse)
    with pytest.raises(InputError, match="status 401"):
        request(service, tmp_path / "journal.jsonl", questions)
    assert len(service.bodies) < 20


# The scripts: what a run of the workflow does with the replies.


def script(service, folder, on_invalid="error", **changed):
    """Run the script; None, or its error message."""
    split = folder / "split.parquet"
    questions = [Question(text, "Because.", "1") for text in [*QUESTIONS.values(), "Another one?"]]
    table = split_test_questions(questions, len(questions), 6, 1)
    table["leaked"] = table.question != "Another one?"
    parquet.write(split, table, "questions", {})
    endpoint = {"base_url": service.url, "model": "m", "max_attempts": 2, "request": {}}
    endpoint |= {"served_model": None} | changed
    parameters = {"method": "chat", "on_invalid": on_invalid, "options": endpoint, "seed": 1}
    how = {"options": {"concurrency": 2, "api_key_env": "ZEROGAP_TEST_KEY"}}
    paths = {"questions": split, "output": folder / "out.jsonl", "unrecorded": json.dumps(how)}
    arguments = command_line("paraphrase_questions", folder, parameters, **paths)[2:]
    try:
        run(paraphrase_questions.main, arguments)
    except SystemExit as ending:
        return ending.code
    return None


def refusing(question, nth):
    return 200, completion("New Question: no" if " 22 " in question else good(question))


def failing(question, nth):
    return (500, None) if " 22 " in question else (200, completion(good(question)))


def failing_later(question, nth):
    return refusing(question, nth) if nth == 1 else failing(question, nth)


def cut_off(question, nth):
    """As a service whose model is still thinking."""
    return 200, ended("length", None) if " 22 " in question else completion(good(question))


def filtered(question, nth):
    """As Gemini's service ends a reply, and Azure's refuses a request."""
    if " 22 " in question:
        return 200, ended("content_filter: RECITATION", good(question))
    return 400, {"message": "The prompt was filtered", "code": "content_filter"}


def empty(question, nth):
    return 200, completion("" if " 22 " in question else good(question))


def thinking(question, nth):
    return 200, completion(f"<think>20 or 21?</think>\n\n{good(question)}")


def test_another_endpoint_or_option_of_a_model_is_requested_for_every_question(serve, tmp_path):
    service = serve(lambda q, nth: (200, completion(good(q))))
    others = [{"base_url": "http://other.test"}, {"request": {"temperature": 0.1}}]
    for option in ({}, {}, {"request": {"max_tokens": 64}}, *others):
        assert script(service, tmp_path, **option) is None
    assert service.requests.total() == 3 * 6


@pytest.mark.parametrize(
    ("behave", "on_invalid", "problem", "remedy", "num_kept"),
    [
        (
            refusing, "error", "1 of 6 questions have no valid paraphrase",
            "on_invalid to skip:\n  test-0002: missing numbers: 22", 5,
        ),
        # A service that fails must not decide which questions leak.
        (
            failing, "skip", "1 of 6 questions got no reply from m",
            "run again\n  test-0002: status 500", 5,
        ),
        (
            failing_later, "skip", "1 of 6 questions got no reply from m",
            "run again\n  test-0002: status 500", 5,
        ),
        (
            cut_off, "skip", "1 of 6 questions got no reply from m",
            "run again\n  test-0002: a reply that was cut off; raise request.max_tokens", 5,
        ),
        (
            filtered, "skip", "none of 6 questions has a valid paraphrase",
            "test-0002: a reply that the service filtered", 0,
        ),
        (
            empty, "skip", "1 of 6 questions got no reply from m",
            "run again\n  test-0002: an empty reply", 5,
        ),
        (
            lambda question, nth: (200, completion("no")), "skip",
            "none of 6 questions has a valid paraphrase", "set another paraphrases.method", 0,
        ),
    ],
)  # fmt: skip
def test_a_question_without_a_paraphrase_can_be_an_error(
    serve, tmp_path, behave, on_invalid, problem, remedy, num_kept
):
    message = script(serve(behave), tmp_path, on_invalid)
    assert message.startswith(f"error: {problem}")
    assert remedy in message
    assert not (tmp_path / "out.jsonl").exists()
    kept = tmp_path / "out.replies.jsonl"
    assert kept.exists() == (num_kept > 0)
    assert not num_kept or len(kept.read_text().splitlines()) == num_kept


def test_thinking_is_no_part_of_a_reply(serve, tmp_path):
    assert script(serve(thinking), tmp_path) is None
    assert "<think>" not in (tmp_path / "out.jsonl").read_text()


def test_a_run_whose_replies_are_all_kept_needs_no_key(serve, tmp_path, monkeypatch):
    assert script(serve(lambda q, nth: (200, completion(good(q)))), tmp_path) is None
    first = (tmp_path / "out.jsonl").read_text()
    monkeypatch.delenv("ZEROGAP_TEST_KEY")
    assert script(serve(refusing), tmp_path) is None
    assert (tmp_path / "out.jsonl").read_text() == first


def test_a_skipped_question_does_not_leak(serve, tmp_path, capsys):
    assert script(serve(refusing), tmp_path, on_invalid="skip") is None
    warning = capsys.readouterr().err
    assert "warning: 1 of 6 questions" in warning
    assert "test-0002: missing" in warning
    paths = {"split": tmp_path / "split.parquet", "paraphrases": [tmp_path / "out.jsonl"]}
    write_questions.main(**paths, output=tmp_path / "questions.parquet", metadata={})
    table = parquet.read(tmp_path / "questions.parquet", "questions").set_index("question_id")
    assert len(table) == 7
    assert not table.leaked["test-0002"]
    assert table.paraphrase["test-0002"] is None
    assert table.leaked.sum() == table.paraphrase.notna().sum() == 5
    assert "do not leak: test-0002\n" in capsys.readouterr().out
    provenance = parquet.provenance(tmp_path / "questions.parquet")
    assert provenance["left_out"] == ["test-0002"]
    assert provenance["served_models"] == ["m, fp-7"]


@pytest.mark.parametrize("status", [200, 401, 500])
def test_the_key_is_written_nowhere(serve, tmp_path, status, capsys, caplog):
    """Not even where the service quotes it and the libraries are told to log all they do."""
    caplog.set_level(logging.DEBUG)
    message = script(serve(lambda q, nth: (status, completion(good(q)))), tmp_path)
    assert (message is None) == (status == 200)
    written = capsys.readouterr()
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert "HTTP" in caplog.text
    assert KEY not in f"{message} {written} {caplog.text}"
    assert not any(KEY.encode() in content for content in files)
