"""Paraphrases by a language model (appendix A.1): requested, validated, and saved one by one.

The model is behind an OpenAI-compatible endpoint.
"""

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
from tqdm import tqdm

from zerogap.data.paraphrases.validation import problems_with
from zerogap.errors import InputError

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
_CHARACTERS_PER_TOKEN = 4  # of English text, for the estimate
_MAX_RETRIES = 5  # of one request, by the library, with exponential back-off or Retry-After
_TIMEOUT = 120.0  # seconds
_REFUSALS = (300, 301, 302, 303, 307, 308, 400, 401, 402, 403, 404, 422)


@dataclass(frozen=True)
class Reply:
    """A reply: its text (None: there was none) and the numbers of input and output tokens."""

    text: str | None
    input_tokens: int = 0
    output_tokens: int = 0


class NoReplyError(Exception):
    """A request failed in a way that another attempt may not; the message says how."""


class Paraphrases(NamedTuple):
    """The outcome per question_id.

    `valid` holds the paraphrases, `invalid` what was wrong with the last reply of the other
    questions, and `unanswered` how the last request failed where no reply ever came.
    """

    valid: dict[str, str]
    invalid: dict[str, str]
    unanswered: dict[str, str]


# Messages → reply. Raises NoReplyError, or InputError if another attempt is pointless.
ChatModel = Callable[[list[dict[str, str]]], Reply]


def paraphrase_all(
    questions: Mapping[str, str],
    journal: str | Path,
    chat: ChatModel,
    *,
    model: str,
    max_attempts: int,
    concurrency: int = 1,
) -> Paraphrases:
    """Paraphrase the questions.

    A reply is accepted if it is one line 'New Question: …' without `problems_with`; otherwise the
    question is sent again with the reply and what is wrong with it. Each accepted reply is appended
    to the journal at once, and questions for which the journal has a valid one of the same model
    are not sent again, so an interrupted run resumes without paying twice. An estimate of the
    tokens goes to standard output first, a progress bar to standard error.

    Args:
        questions: question_id → text.
        journal: a JSON Lines file; created if it does not exist.
        chat: the model.
        model: name of the model in the journal, with the options that change its replies.
        max_attempts: requests per question.
        concurrency: requests at the same time.

    Raises:
        InputError: another attempt is pointless, or the journal is invalid.
    """
    accepted = _Journal(Path(journal), model)
    missing = {i: text for i, text in questions.items() if text not in accepted.paraphrases}
    invalid: dict[str, str] = {}
    unanswered: dict[str, str] = {}
    if missing:
        print(estimate(list(missing.values()), max_attempts), flush=True)
        invalid, unanswered = _request_all(chat, missing, accepted, max_attempts, concurrency)
    valid = {
        i: accepted.paraphrases[text]
        for i, text in questions.items()
        if i not in invalid and i not in unanswered
    }
    return Paraphrases(valid, invalid, unanswered)


def chat_endpoint(base_url: str, model: str, api_key_env: str) -> ChatModel:
    """The endpoint as a function from messages to a reply.

    Args:
        base_url: address of the endpoint.
        model: name of the model at the endpoint.
        api_key_env: the environment variable that holds the key, which is written nowhere.

    Raises:
        InputError: the key is not set. The function raises it if the endpoint refuses a request.
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
        max_retries=_MAX_RETRIES,
        timeout=_TIMEOUT,
        # The key and the questions go to the configured host only.
        http_client=httpx2.Client(follow_redirects=False),
    )

    def chat(messages: list[dict[str, str]]) -> Reply:
        # Services quote the key in their messages, so only the kind of an error is passed on.
        conversation: Any = messages
        try:
            reply = client.chat.completions.create(model=model, messages=conversation)
        except openai.APIStatusError as error:
            if error.status_code in _REFUSALS:
                raise InputError(
                    f"{base_url} refuses requests to {model!r} with status {error.status_code}; "
                    "check base_url, model, the key and the account"
                ) from None
            raise NoReplyError(f"status {error.status_code} after {_MAX_RETRIES} retries") from None
        except openai.APIError as error:
            raise NoReplyError(f"{type(error).__name__} after {_MAX_RETRIES} retries") from None
        except json.JSONDecodeError:
            raise NoReplyError("a reply that is not valid JSON") from None
        # A service may answer with anything, so the attributes may be missing.
        choices = getattr(reply, "choices", None)
        usage = getattr(reply, "usage", None)
        return Reply(
            choices[0].message.content if choices else None,
            usage.prompt_tokens if usage else 0,
            usage.completion_tokens if usage else 0,
        )

    return chat


def estimate(questions: list[str], max_attempts: int) -> str:
    """How many tokens the questions will take; a paraphrase counts as long as its question."""
    characters = sum(map(len, questions))
    input_tokens = (characters + len(SYSTEM_PROMPT) * len(questions)) // _CHARACTERS_PER_TOKEN
    output_tokens = (characters + len(_PREFIX) * len(questions)) // _CHARACTERS_PER_TOKEN
    return (
        f"{len(questions)} questions to paraphrase: about {input_tokens:,} input and "
        f"{output_tokens:,} output tokens, at most {max_attempts} times that if replies are "
        "invalid; tokens of a model's reasoning are not included"
    )


def format_invalid(invalid: Mapping[str, str]) -> str:
    """The questions without a paraphrase and the reasons, one per line."""
    return "".join(f"\n  {question_id}: {invalid[question_id]}" for question_id in sorted(invalid))


class _Journal:
    """The accepted replies of one model by question, each written to disk as it arrives."""

    def __init__(self, path: Path, model: str) -> None:
        self.path, self.model = path, model
        self.paraphrases: dict[str, str] = {}
        self._lock = threading.Lock()
        if path.is_file():
            self._read()

    def _read(self) -> None:
        lines, newline, incomplete_line = self.path.read_bytes().rpartition(b"\n")
        if incomplete_line:  # it was being written when a run was killed
            with self.path.open("r+b") as file:
                file.truncate(len(lines + newline))
        for number, line in enumerate(lines.decode().split("\n") if lines else [], start=1):
            try:
                entry = json.loads(line)
                question, paraphrase = entry["question"], entry["paraphrase"]
                if entry["model"] == self.model and not problems_with(question, paraphrase):
                    self.paraphrases[question] = paraphrase
            except (json.JSONDecodeError, TypeError, KeyError) as error:
                raise InputError(
                    f"{self.path}, line {number}: is not a journal entry; remove the line"
                ) from error

    def add(self, question: str, paraphrase: str) -> None:
        entry = {"model": self.model, "question": question, "paraphrase": paraphrase}
        with self._lock:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")
                file.flush()
                os.fsync(file.fileno())
            self.paraphrases[question] = paraphrase


def _request_all(
    chat: ChatModel,
    questions: Mapping[str, str],
    journal: _Journal,
    max_attempts: int,
    concurrency: int,
) -> tuple[dict[str, str], dict[str, str]]:
    """Request paraphrases concurrently; the questions with invalid replies, and without any."""
    invalid: dict[str, str] = {}
    unanswered: dict[str, str] = {}
    input_tokens = output_tokens = 0
    with (
        ThreadPoolExecutor(concurrency) as pool,
        tqdm(
            total=len(questions),
            unit="question",
            mininterval=0.5 if sys.stderr.isatty() else 10,  # fewer lines in a log file
        ) as bar,
    ):
        futures = {
            pool.submit(_request_until_valid, chat, text, journal, max_attempts): question_id
            for question_id, text in questions.items()
        }
        try:
            for future in as_completed(futures):
                outcome = future.result()
                input_tokens += outcome.input_tokens
                output_tokens += outcome.output_tokens
                if outcome.reason:
                    failed = invalid if outcome.answered else unanswered
                    failed[futures[future]] = outcome.reason
                bar.set_postfix_str(
                    f"{input_tokens:,} input and {output_tokens:,} output tokens, "
                    f"{len(invalid) + len(unanswered)} without a paraphrase",
                    refresh=False,
                )
                bar.update()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    print(f"used {input_tokens:,} input and {output_tokens:,} output tokens")
    return invalid, unanswered


@dataclass
class _Outcome:
    """What the requests for one question led to.

    `reason` says what was wrong in the end (None: nothing), `answered` whether a reply ever came.
    """

    reason: str | None = None
    answered: bool = False
    input_tokens: int = 0
    output_tokens: int = 0


def _request_until_valid(
    chat: ChatModel, question: str, journal: _Journal, max_attempts: int
) -> _Outcome:
    """Request until a reply is valid and save it; say what was wrong with the last reply."""
    request = [
        {"role": "system", "content": SYSTEM_PROMPT},
        {"role": "user", "content": question},
    ]
    messages, outcome = request, _Outcome()
    for _ in range(max_attempts):
        try:
            reply = chat(messages)
        except NoReplyError as error:
            if not outcome.answered:
                outcome.reason = str(error)
            continue
        outcome.answered = True
        outcome.input_tokens += reply.input_tokens
        outcome.output_tokens += reply.output_tokens
        text, outcome.reason = _parse_reply(question, reply.text)
        if not outcome.reason:
            journal.add(question, text)
            break
        messages = [*request, *_correction(reply.text, outcome.reason)]
    return outcome


def _correction(reply: str | None, reason: str) -> list[dict[str, str]]:
    """An invalid reply and what is wrong with it, as messages; none for an empty reply."""
    if not reply or not reply.strip():
        return []
    return [
        {"role": "assistant", "content": reply},
        {"role": "user", "content": _CORRECTION.format(reason=reason)},
    ]


def _parse_reply(question: str, content: str | None) -> tuple[str, str | None]:
    """The paraphrase of a reply and what is wrong with it, if anything."""
    if not content or not content.strip():
        return "", "an empty reply"
    line = content.strip()
    if not line.startswith(_PREFIX):
        return "", f"the reply does not start with '{_PREFIX}'"
    text = line.removeprefix(_PREFIX).strip()
    return text, "; ".join(problems_with(question, text)) or None
