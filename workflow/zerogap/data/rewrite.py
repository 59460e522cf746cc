"""PQ's paraphrases by a language model behind an OpenAI-compatible endpoint (appendix A.1)."""

import json
import os
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING

from zerogap.data.paraphrase import problems_with
from zerogap.errors import InputError

if TYPE_CHECKING:
    import openai

# Verbatim from appendix A.1.
SYSTEM_PROMPT = (
    "Significantly rephrase the given GSM8K math question. Keep ALL numbers and the final answer "
    "identical. Do not include any solution. Output exactly one line in this format and nothing "
    "else:\nNew Question: <rephrased question>"
)
_PREFIX = "New Question:"
_RETRIES = 5  # of one request, by the library, with growing pauses
_TIMEOUT = 120.0  # seconds


def rewrite(
    questions: Mapping[str, str],
    journal: str | Path,
    *,
    base_url: str,
    model: str,
    api_key_env: str,
    concurrency: int,
    tries: int,
) -> dict[str, str]:
    """Paraphrase the questions, at most `concurrency` at a time.

    A reply is accepted when it is one line 'New Question: …' without `problems_with`; otherwise
    the question is asked again, `tries` times in all. Every accepted reply is on disk in the
    journal before the next is awaited, and what the journal has for the same question and model
    is not asked again: an interrupted run goes on where it stopped.

    Args:
        questions: question_id → text.
        journal: a JSON Lines file, made where it is missing, appended to otherwise.
        api_key_env: the environment variable that holds the key; the key is written nowhere.

    Returns:
        question_id → paraphrase, for all the questions.

    Raises:
        InputError: the key is not set, the endpoint refuses the requests, or questions are left
            without a valid paraphrase; the message lists them with the last reason.
    """
    known = _Journal(Path(journal), model)
    missing = {i: text for i, text in questions.items() if text not in known.accepted}
    if missing:
        _ask_all(_client(base_url, api_key_env), model, missing, known, concurrency, tries)
    return {i: known.accepted[text] for i, text in questions.items()}


class _Journal:
    """Accepted replies of a model, by question, each written out as it comes."""

    def __init__(self, path: Path, model: str) -> None:
        self.path, self.model = path, model
        self.accepted: dict[str, str] = {}
        self._lock = threading.Lock()
        if path.is_file():
            self._read()

    def _read(self) -> None:
        whole, end, torn = self.path.read_bytes().rpartition(b"\n")
        if torn:  # the line that was being written when a run was killed
            with self.path.open("r+b") as file:
                file.truncate(len(whole + end))
        for number, line in enumerate(whole.decode().split("\n") if whole else [], start=1):
            try:
                entry = json.loads(line)
                if entry["model"] == self.model:
                    self.accepted[entry["question"]] = entry["paraphrase"]
            except (json.JSONDecodeError, TypeError, KeyError) as error:
                raise InputError(
                    f"{self.path}, line {number}: not a journal entry; remove the line"
                ) from error

    def add(self, question: str, paraphrase: str) -> None:
        entry = {"model": self.model, "question": question, "paraphrase": paraphrase}
        with self._lock:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")
                file.flush()
                os.fsync(file.fileno())
            self.accepted[question] = paraphrase


def _client(base_url: str, api_key_env: str) -> "openai.OpenAI":
    import openai  # takes a second, and the rules do without

    key = os.environ.get(api_key_env)
    if not key:
        raise InputError(
            f"the environment variable {api_key_env} is not set; it must hold the key for "
            f"{base_url} (or set data.paraphrases.method to rules)"
        )
    return openai.OpenAI(base_url=base_url, api_key=key, max_retries=_RETRIES, timeout=_TIMEOUT)


def _ask_all(
    client: "openai.OpenAI",
    model: str,
    questions: Mapping[str, str],
    journal: _Journal,
    concurrency: int,
    tries: int,
) -> None:
    failed: dict[str, str] = {}
    with ThreadPoolExecutor(concurrency) as pool:
        asked = {
            pool.submit(_ask, client, model, text, journal, tries): i
            for i, text in questions.items()
        }
        try:
            for done, future in enumerate(as_completed(asked), start=1):
                if reason := future.result():
                    failed[asked[future]] = reason
                print(f"{done}/{len(asked)} questions, {len(failed)} without a paraphrase")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    if failed:
        lines = "".join(f"\n  {i}: {failed[i]}" for i in sorted(failed))
        raise InputError(
            f"{len(failed)} of {len(questions)} questions have no valid paraphrase; the others "
            f"are kept in {journal.path}, so run again:{lines}"
        )


def _ask(
    client: "openai.OpenAI", model: str, question: str, journal: _Journal, tries: int
) -> str | None:
    """Ask until a reply is valid and journal it; the last reason where none is."""
    import openai

    reason = None
    for _ in range(tries):
        try:
            reply = client.chat.completions.create(
                model=model,
                messages=[
                    {"role": "system", "content": SYSTEM_PROMPT},
                    {"role": "user", "content": question},
                ],
            )
        except openai.APIStatusError as error:
            # Services quote the key in their messages: only the status is passed on.
            if error.status_code in (400, 401, 402, 403, 404, 422):
                raise InputError(
                    f"{client.base_url} refuses requests to {model!r} with status "
                    f"{error.status_code}; check base_url, model, the key and the account"
                ) from None
            reason = f"status {error.status_code} after {_RETRIES} retries"
            continue
        except openai.APIError as error:
            reason = f"{type(error).__name__} after {_RETRIES} retries"
            continue
        content = reply.choices[0].message.content if reply.choices else None
        text, reason = _checked(question, content)
        if not reason:
            journal.add(question, text)
            return None
    return reason


def _checked(question: str, content: str | None) -> tuple[str, str | None]:
    """The paraphrase of a reply and what is wrong with it, if anything."""
    if not content or not content.strip():
        return "", "an empty reply"
    line = content.strip()
    if not line.startswith(_PREFIX):
        return "", f"the reply does not start with '{_PREFIX}'"
    text = line.removeprefix(_PREFIX).strip()
    return text, "; ".join(problems_with(question, text)) or None
