"""Paraphrases by a language model (appendix A.1): requested, validated, and saved one by one.

The model is behind an OpenAI-compatible endpoint.
"""

import contextlib
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
from tqdm import tqdm

from zerogap.data.paraphrases.validation import problems_with
from zerogap.data.plain_text import without_thinking
from zerogap.errors import InputError
from zerogap.io.resume import Journal

# Verbatim from appendix A.1.
SYSTEM_PROMPT = (
    "Significantly rephrase the given GSM8K math question. Keep ALL numbers and the final answer "
    "identical. Do not include any solution. Output exactly one line in this format and nothing "
    "else:\nNew Question: <rephrased question>"
)
_PREFIX = "New Question:"
# Not in the paper, which does not say what follows an invalid reply.
_CORRECTION = (
    "This reply is not valid: {reason}. Rephrase the original question again, in the same format."
)
MAX_RETRIES = 5  # of one request, by the library, with exponential back-off or Retry-After
_TIMEOUT = 120.0  # seconds
_MAX_BYTES = 1_000_000  # of a reply
_PASSING = (408, 409, 425, 429)  # of the statuses below 500: another attempt may succeed
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
FILTERED = "content_filter"  # perhaps because of the question
INCOMPLETE = {  # why a reply ended → what it is, if it is not whole
    "length": "a reply that was cut off; raise request.max_tokens",
    "insufficient_system_resource": "a reply that was cut off by an overloaded service",
    FILTERED: "a reply that the service filtered",
}


class Reply(NamedTuple):
    """A reply: its text (None: there was none), and what the service says of it and of itself."""

    text: str | None
    finish_reason: str | None
    model: str | None
    fingerprint: str | None
    input_tokens: int
    output_tokens: int


class NoReplyError(Exception):
    """A request failed in a way that another attempt may not; the message says how."""


class Paraphrases(NamedTuple):
    """The outcome per question_id."""

    valid: dict[str, dict[str, str | None]]  # each with paraphrase, served_model, fingerprint
    invalid: dict[str, str]  # what was wrong with the last reply
    unanswered: dict[str, str]  # how the last request failed


# Messages → reply. Raises NoReplyError, or InputError if another attempt is pointless.
ChatModel = Callable[[list[dict[str, str]]], Reply]


def paraphrase_all(
    questions: Mapping[str, str],
    journal: Path,
    connect: Callable[[], ChatModel],
    *,
    identity: str,
    max_attempts: int,
    concurrency: int,
) -> Paraphrases:
    """Paraphrase the questions.

    A reply is accepted if it is one line 'New Question: …' without `problems_with`; otherwise the
    question is sent again with the reply and what is wrong with it. Each accepted reply is in the
    journal at once, and questions for which the journal has a valid one of the same identity are
    not sent again, so an interrupted run resumes without paying twice.

    Args:
        questions: question_id → text.
        journal: the file; created if it does not exist.
        connect: makes the model, if a question has to be sent.
        identity: everything that changes the model's replies.
        max_attempts: requests per question.
        concurrency: requests at the same time.

    Raises:
        InputError: another attempt is pointless.
    """
    accepted, lock = Journal(journal, {}), threading.Lock()  # it keeps every identity
    result = Paraphrases({}, {}, {})
    for i, text in questions.items():
        known = accepted.get(f"{identity}\n{text}")
        if known and not problems_with(text, known["paraphrase"]):
            result.valid[i] = known
    missing = [i for i in questions if i not in result.valid]
    print(f"{len(missing)} of {len(questions)} questions to paraphrase", flush=True)
    if not missing:
        return result
    replies: list[Reply] = []
    chat = connect()

    def request(question_id: str) -> None:
        text = questions[question_id]
        paraphrase, problem, answered = _request_until_valid(chat, text, max_attempts, replies)
        with lock:
            if paraphrase:
                accepted.add(f"{identity}\n{text}", paraphrase)
                result.valid[question_id] = paraphrase
            else:
                (result.invalid if answered else result.unanswered)[question_id] = problem

    with (
        ThreadPoolExecutor(concurrency) as pool,
        tqdm(
            total=len(missing),
            unit="question",
            mininterval=0.5 if sys.stderr.isatty() else 10,  # fewer lines in a log file
        ) as bar,
    ):
        requests = [pool.submit(request, question_id) for question_id in missing]
        try:
            for done in as_completed(requests):
                done.result()
                bar.update()
        except BaseException:  # a refused key, or a wrong model: further requests may cost
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    print(
        f"used {sum(reply.input_tokens for reply in replies):,} input and "
        f"{sum(reply.output_tokens for reply in replies):,} output tokens"
    )
    return result._replace(valid={i: result.valid[i] for i in questions if i in result.valid})


def chat_endpoint(
    base_url: str,
    model: str,
    api_key_env: str,
    request: Mapping[str, Any] | None = None,
    served_model: str | None = None,
) -> ChatModel:
    """The endpoint as a function from messages to a reply.

    The arguments are the keys of `paraphrases.chat` in a benchmark file. The API key is written
    nowhere.

    Raises:
        InputError: the key is not set. The function raises it if the endpoint refuses a request,
            or if another model replies.
    """
    import openai  # takes a second, and the other methods do not need it

    key = os.environ.get(api_key_env)
    if not key:
        raise InputError(
            f"the environment variable {api_key_env} is not set; set it to the key for {base_url}, "
            "or set paraphrases.method to rules"
        )
    client = openai.OpenAI(
        base_url=base_url,
        api_key=key,
        max_retries=MAX_RETRIES,
        timeout=_TIMEOUT,
        # The key and the questions go to the configured host only.
        http_client=httpx2.Client(
            follow_redirects=False,
            headers={"Accept-Encoding": "identity"},
            event_hooks={"response": [_read_limited]},
        ),
    )

    def chat(messages: list[dict[str, str]]) -> Reply:
        # Services quote the key in their messages, so only the kind of an error is passed on.
        conversation: Any = messages
        try:
            completion = client.chat.completions.create(
                model=model, messages=conversation, extra_body=request
            )
        except openai.APIStatusError as error:
            if error.code == FILTERED:  # Azure's, with status 400
                return Reply(None, FILTERED, None, None, 0, 0)
            if error.status_code < 500 and error.status_code not in _PASSING:
                raise InputError(
                    f"{base_url} refuses requests to {model!r} with status {error.status_code}; "
                    "check base_url, model, request, the key and the account"
                ) from None
            raise NoReplyError(f"status {error.status_code} after {MAX_RETRIES} retries") from None
        except openai.APIError as error:
            raise NoReplyError(f"{type(error).__name__} after {MAX_RETRIES} retries") from None
        except (ValueError, RecursionError):
            raise NoReplyError("a reply that is not valid JSON") from None
        reply = _reply(completion)
        expected, name = served_model or model, str(reply.model)
        # A name may itself have the brackets of a pattern.
        if reply.text is not None and name != expected and not fnmatch(name, expected):
            raise InputError(
                f"{base_url} answers requests to {model!r} with the model {reply.model!r}; set "
                f"paraphrases.chat.base_url to a host of {model!r} (docs/reproduce.md), or accept "
                f"the other model with paraphrases.chat.served_model: '{reply.model}'"
            )
        return reply

    return chat


def _reply(completion: Any) -> Reply:
    """What a service has sent; it may leave any part out, or send another type."""
    content = reason = None
    with contextlib.suppress(AttributeError, LookupError, TypeError):
        reason = completion.choices[0].finish_reason
        content = completion.choices[0].message.content
    if isinstance(content, str) and _HALF_CHARACTER.search(content):
        content = None  # it could not be written
    made_by = [getattr(completion, name, None) for name in ("model", "system_fingerprint")]
    usage = getattr(completion, "usage", None)
    used = [getattr(usage, f"{kind}_tokens", None) for kind in ("prompt", "completion")]
    parts = (content, reason, *made_by)
    text, end, model, fingerprint = (part if isinstance(part, str) else None for part in parts)
    input_tokens, output_tokens = (n if isinstance(n, int) else 0 for n in used)
    end = end and end.partition(":")[0]  # Gemini's has a reason: "content_filter: RECITATION"
    return Reply(text, end, model, fingerprint, input_tokens, output_tokens)


def _read_limited(response: httpx2.Response) -> None:
    """Read a reply, unless it may fill the memory: a packed one may unpack to a thousand times."""
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise NoReplyError("a packed reply, which was not asked for")
    stream: Any = response.stream
    content = bytearray()  # a service may send single bytes, and bytes would be copied for each
    for chunk in stream:
        content += chunk
        if len(content) > _MAX_BYTES:
            raise NoReplyError(f"a reply of more than {_MAX_BYTES:,} bytes")
    stream.close()
    response.stream = httpx2.ByteStream(bytes(content))


def format_invalid(invalid: Mapping[str, str]) -> str:
    """The questions without a paraphrase and the reasons, one per line."""
    return "".join(f"\n  {question_id}: {invalid[question_id]}" for question_id in sorted(invalid))


def _request_until_valid(
    chat: ChatModel, question: str, max_attempts: int, replies: list[Reply]
) -> tuple[dict[str, str | None] | None, str, bool]:
    """Request until a reply is valid.

    Returns:
        The paraphrase, else what was wrong with the last request, and whether it had a whole reply.
    """
    request = [{"role": "system", "content": SYSTEM_PROMPT}, {"role": "user", "content": question}]
    messages, problem, answered = request, "", False
    for _ in range(max_attempts):
        try:
            reply = chat(messages)
        except NoReplyError as error:
            problem, answered = str(error), False
            continue
        replies.append(reply)
        text = without_thinking(reply.text or "").strip()
        paraphrase = text.removeprefix(_PREFIX).strip()
        incomplete = INCOMPLETE.get(reply.finish_reason or "", "" if text else "an empty reply")
        answered = not incomplete or reply.finish_reason == FILTERED
        if incomplete:
            problem, messages = incomplete, request
            continue
        if not text.startswith(_PREFIX):
            problem = f"the reply does not start with '{_PREFIX}'"
        elif not (problem := "; ".join(problems_with(question, paraphrase))):
            made_by = {"served_model": reply.model, "fingerprint": reply.fingerprint}
            return {"paraphrase": paraphrase, **made_by}, "", True
        messages = [
            *request,
            {"role": "assistant", "content": text},
            {"role": "user", "content": _CORRECTION.format(reason=problem)},
        ]
    return None, problem, answered
