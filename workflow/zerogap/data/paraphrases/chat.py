"""Paraphrases by a language model (appendix A.1): requested, validated, and saved one by one.

The model is behind an OpenAI-compatible endpoint.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
from tqdm import tqdm

from zerogap.data.paraphrases.validation import problems_with
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
_REFUSALS = (300, 301, 302, 303, 307, 308, 400, 401, 402, 403, 404, 422)


@dataclass(frozen=True)
class Reply:
    """A reply: its text (None: there was none), what made it, and the numbers of tokens.

    `model` and `fingerprint` are what the service says of itself; None if it does not.
    """

    text: str | None
    model: str | None = None
    fingerprint: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0


class NoReplyError(Exception):
    """A request failed in a way that another attempt may not; the message says how."""


class Paraphrases(NamedTuple):
    """The outcome per question_id.

    `valid` holds the paraphrases, each with `paraphrase`, `served_model` and `fingerprint`;
    `invalid` what was wrong with the last reply of the other questions, and `unanswered` how the
    last request failed where no reply ever came.
    """

    valid: dict[str, dict[str, str | None]]
    invalid: dict[str, str]
    unanswered: dict[str, str]


# Messages → reply. Raises NoReplyError, or InputError if another attempt is pointless.
ChatModel = Callable[[list[dict[str, str]]], Reply]


def paraphrase_all(
    questions: Mapping[str, str],
    journal: Path,
    chat: ChatModel,
    *,
    identity: str,
    max_attempts: int,
    concurrency: int,
) -> Paraphrases:
    """Paraphrase the questions.

    A reply is accepted if it is one line 'New Question: …' without `problems_with`; otherwise the
    question is sent again with the reply and what is wrong with it. Each accepted reply is in the
    journal at once, and questions for which the journal has a valid one of the same identity are
    not sent again, so an interrupted run resumes without paying twice. A progress bar with the
    tokens used goes to standard error.

    Args:
        questions: question_id → text.
        journal: a file (:class:`zerogap.io.resume.Journal`); created if it does not exist.
        chat: the model.
        identity: everything that changes the model's replies.
        max_attempts: requests per question.
        concurrency: requests at the same time.

    Raises:
        InputError: another attempt is pointless.
    """
    accepted, lock = Journal(journal, {}), threading.Lock()  # it keeps every identity
    valid = {i: accepted.get(f"{identity}\n{text}") for i, text in questions.items()}
    missing = [
        i
        for i, text in questions.items()
        if not valid[i] or problems_with(text, valid[i]["paraphrase"])
    ]
    print(f"{len(missing)} of {len(questions)} questions to paraphrase", flush=True)

    def request(question_id: str) -> _Outcome:
        text = questions[question_id]
        outcome = _request_until_valid(chat, text, max_attempts)
        if outcome.paraphrase:
            with lock:
                accepted.add(f"{identity}\n{text}", outcome.paraphrase)
        return outcome

    outcomes = _request_all(request, missing, concurrency)
    valid |= {i: outcome.paraphrase for i, outcome in outcomes.items()}
    return Paraphrases(
        {i: paraphrase for i, paraphrase in valid.items() if paraphrase},
        {i: o.problem for i, o in outcomes.items() if not o.paraphrase and o.replies},
        {i: o.problem for i, o in outcomes.items() if not o.paraphrase and not o.replies},
    )


def chat_endpoint(
    base_url: str,
    model: str,
    api_key_env: str,
    request: Mapping[str, Any] | None = None,
    served_model: str | None = None,
) -> ChatModel:
    """The endpoint as a function from messages to a reply.

    Args:
        base_url: address of the endpoint.
        model: name of the model at the endpoint.
        api_key_env: the environment variable that holds the key, which is written nowhere.
        request: further fields of every request.
        served_model: pattern of the model that replies must name; None: `model` itself.

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
            event_hooks={"response": [_limit]},
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
            if error.status_code in _REFUSALS:
                raise InputError(
                    f"{base_url} refuses requests to {model!r} with status {error.status_code}; "
                    "check base_url, model, request, the key and the account"
                ) from None
            raise NoReplyError(f"status {error.status_code} after {MAX_RETRIES} retries") from None
        except openai.APIError as error:
            raise NoReplyError(f"{type(error).__name__} after {MAX_RETRIES} retries") from None
        except (ValueError, RecursionError):
            raise NoReplyError("a reply that is not valid JSON") from None
        reply = _reply_of(completion)
        if reply.text is not None and not fnmatch(str(reply.model), served_model or model):
            raise InputError(
                f"{base_url} answers requests to {model!r} with the model {reply.model!r}; set "
                f"paraphrases.chat.base_url to a host of {model!r} (docs/reproduce.md), or accept "
                f"the other model with paraphrases.chat.served_model: '{reply.model}'"
            )
        return reply

    return chat


def _reply_of(completion: object) -> Reply:
    """The parts of a completion; a service may leave any out, or send another type."""
    return Reply(
        text=_part(str, completion, "choices", 0, "message", "content"),
        model=_part(str, completion, "model"),
        fingerprint=_part(str, completion, "system_fingerprint"),
        input_tokens=_part(int, completion, "usage", "prompt_tokens") or 0,
        output_tokens=_part(int, completion, "usage", "completion_tokens") or 0,
    )


class _Limited(httpx2.SyncByteStream):
    """A reply up to a size: an endless one would fill the memory."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for chunk in self._stream:
            size += len(chunk)
            if size > _MAX_BYTES:
                raise NoReplyError(f"a reply of more than {_MAX_BYTES:,} bytes")
            yield chunk

    def close(self) -> None:
        self._stream.close()


def _limit(response: httpx2.Response) -> None:
    """Refuse a packed reply, which may unpack to a thousand times its size, and an endless one."""
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise NoReplyError("a packed reply, which was not asked for")
    response.stream = _Limited(response.stream)


def _part(kind: type, value: Any, *path: Any) -> Any:
    """A part of an object of the client's library, or of JSON where it has no types for it.

    None if there is no such part, or it is of another kind.
    """
    for key in path:
        try:
            value = value[key] if isinstance(value, list | dict) else getattr(value, str(key), None)
        except (IndexError, KeyError):
            return None
    return value if isinstance(value, kind) else None


def format_invalid(invalid: Mapping[str, str]) -> str:
    """The questions without a paraphrase and the reasons, one per line."""
    return "".join(f"\n  {question_id}: {invalid[question_id]}" for question_id in sorted(invalid))


@dataclass
class _Outcome:
    """What the requests for one question led to: a paraphrase, or the `problem` in the end."""

    paraphrase: dict[str, str | None] | None = None
    problem: str = ""
    replies: list[Reply] = field(default_factory=list)


def _request_all(
    request: Callable[[str], _Outcome], question_ids: list[str], concurrency: int
) -> dict[str, _Outcome]:
    """Request paraphrases concurrently, with a progress bar."""
    outcomes: dict[str, _Outcome] = {}
    used = ""
    with (
        ThreadPoolExecutor(concurrency) as pool,
        tqdm(
            total=len(question_ids),
            unit="question",
            mininterval=0.5 if sys.stderr.isatty() else 10,  # fewer lines in a log file
            disable=not question_ids,
        ) as bar,
    ):
        futures = {pool.submit(request, question_id): question_id for question_id in question_ids}
        try:
            for future in as_completed(futures):
                outcomes[futures[future]] = future.result()
                replies = [reply for o in outcomes.values() for reply in o.replies]
                used = (
                    f"{sum(reply.input_tokens for reply in replies):,} input and "
                    f"{sum(reply.output_tokens for reply in replies):,} output tokens"
                )
                failed = sum(not o.paraphrase for o in outcomes.values())
                bar.set_postfix_str(f"{used}, {failed} without a paraphrase", refresh=False)
                bar.update()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    if used:
        print(f"used {used}")
    return outcomes


def _request_until_valid(chat: ChatModel, question: str, max_attempts: int) -> _Outcome:
    """Request until a reply is valid; otherwise say what was wrong with the last one."""
    request = [
        {"role": "system", "content": SYSTEM_PROMPT},
        {"role": "user", "content": question},
    ]
    messages, outcome = request, _Outcome()
    for _ in range(max_attempts):
        try:
            reply = chat(messages)
        except NoReplyError as error:
            if not outcome.replies:
                outcome.problem = str(error)
            continue
        outcome.replies.append(reply)
        text = (reply.text or "").strip()
        paraphrase = text.removeprefix(_PREFIX).strip()
        if not text:
            outcome.problem, messages = "an empty reply", request
            continue
        if not text.startswith(_PREFIX):
            outcome.problem = f"the reply does not start with '{_PREFIX}'"
        elif problems := problems_with(question, paraphrase):
            outcome.problem = "; ".join(problems)
        else:
            outcome.paraphrase = {
                "paraphrase": paraphrase,
                "served_model": reply.model,
                "fingerprint": reply.fingerprint,
            }
            break
        correction = _CORRECTION.format(reason=outcome.problem)
        messages = [
            *request,
            {"role": "assistant", "content": text},
            {"role": "user", "content": correction},
        ]
    return outcome
