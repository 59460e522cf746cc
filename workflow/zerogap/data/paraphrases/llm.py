"""PQ's paraphrases by a language model (appendix A.1): asked, checked, kept one by one.

Who is asked is the caller's choice: a chat endpoint (:mod:`zerogap.data.paraphrases.chat_endpoint`) or a model
on this machine (:mod:`zerogap.data.paraphrases.chat_model`). Both are a function from messages to a reply.
"""

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from zerogap.data.paraphrases.rules import problems_with
from zerogap.errors import InputError

# Verbatim from appendix A.1.
SYSTEM_PROMPT = (
    "Significantly rephrase the given GSM8K math question. Keep ALL numbers and the final answer "
    "identical. Do not include any solution. Output exactly one line in this format and nothing "
    "else:\nNew Question: <rephrased question>"
)
_PREFIX = "New Question:"
_CHARACTERS_A_TOKEN = 4  # of English, for the estimate


@dataclass(frozen=True)
class Reply:
    """What came back: the text (None: nothing) and how many tokens were read and written."""

    text: str | None
    tokens_in: int = 0
    tokens_out: int = 0


class NoReply(Exception):
    """A request failed in a way that another try may mend; the message says how."""


# (messages, try) → reply. Raises NoReply, or InputError where asking again is useless.
Ask = Callable[[list[dict[str, str]], int], Reply]


def rewrite(
    questions: Mapping[str, str],
    journal: str | Path,
    ask: Ask,
    *,
    model: str,
    tries: int,
    concurrency: int = 1,
) -> tuple[dict[str, str], dict[str, str]]:
    """Paraphrase the questions, at most `concurrency` at a time.

    A reply is accepted when it is one line 'New Question: …' without `problems_with`; otherwise
    the question is asked again, `tries` times in all. Every accepted reply is on disk in the
    journal before the next is awaited, and what the journal has for the same question and model
    is not asked again: an interrupted run goes on where it stopped. An estimate of the tokens
    goes to standard output first, a progress bar to standard error.

    Args:
        questions: question_id → text.
        journal: a JSON Lines file, made where it is missing, appended to otherwise.
        model: the name under which the journal keeps the replies.

    Returns:
        question_id → paraphrase, and question_id → what was wrong with the last reply, for the
        questions that have none.

    Raises:
        InputError: `ask` says that asking again is useless, or the journal cannot be read.
    """
    known = _Journal(Path(journal), model)
    missing = {i: text for i, text in questions.items() if text not in known.accepted}
    invalid = {}
    if missing:
        print(estimate(list(missing.values()), tries), flush=True)
        invalid = _ask_all(ask, missing, known, tries, concurrency)
    found = {i: known.accepted[text] for i, text in questions.items() if i not in invalid}
    return found, invalid


def estimate(questions: list[str], tries: int) -> str:
    """What asking will take: a paraphrase is as long as its question, a token four characters."""
    asked = sum(map(len, questions))
    read = (asked + len(SYSTEM_PROMPT) * len(questions)) // _CHARACTERS_A_TOKEN
    written = (asked + len(_PREFIX) * len(questions)) // _CHARACTERS_A_TOKEN
    return (
        f"{len(questions)} questions to ask: about {read:,} tokens in and {written:,} out, "
        f"at most {tries} times that where replies are refused; a model's reasoning comes on top"
    )


def listed(invalid: Mapping[str, str]) -> str:
    """The questions without a paraphrase, a line each."""
    return "".join(f"\n  {i}: {invalid[i]}" for i in sorted(invalid))


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


def _ask_all(
    ask: Ask, questions: Mapping[str, str], journal: _Journal, tries: int, concurrency: int
) -> dict[str, str]:
    """question_id → the last reason, where no reply is valid."""
    invalid: dict[str, str] = {}
    read = written = 0
    terminal = sys.stderr.isatty()
    with (
        ThreadPoolExecutor(concurrency) as pool,
        tqdm(
            total=len(questions),
            unit="question",
            mininterval=0.5 if terminal else 10,  # a log need not move
        ) as bar,
    ):
        asked = {
            pool.submit(_ask_until_valid, ask, text, journal, tries): i
            for i, text in questions.items()
        }
        try:
            for future in as_completed(asked):
                reason, tokens_in, tokens_out = future.result()
                read, written = read + tokens_in, written + tokens_out
                if reason:
                    invalid[asked[future]] = reason
                bar.set_postfix_str(
                    f"{read:,} tokens in, {written:,} out, {len(invalid)} without a paraphrase",
                    refresh=False,
                )
                bar.update()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    print(f"asked with {read:,} tokens in and {written:,} out")
    return invalid


def _ask_until_valid(
    ask: Ask, question: str, journal: _Journal, tries: int
) -> tuple[str | None, int, int]:
    """Ask until a reply is valid and journal it; the last reason where none is, and the tokens."""
    messages = [
        {"role": "system", "content": SYSTEM_PROMPT},
        {"role": "user", "content": question},
    ]
    reason, read, written = None, 0, 0
    for attempt in range(tries):
        try:
            reply = ask(messages, attempt)
        except NoReply as error:
            reason = str(error)
            continue
        read, written = read + reply.tokens_in, written + reply.tokens_out
        text, reason = _checked(question, reply.text)
        if not reason:
            journal.add(question, text)
            break
    return reason, read, written


def _checked(question: str, content: str | None) -> tuple[str, str | None]:
    """The paraphrase of a reply and what is wrong with it, if anything."""
    if not content or not content.strip():
        return "", "an empty reply"
    line = content.strip()
    if not line.startswith(_PREFIX):
        return "", f"the reply does not start with '{_PREFIX}'"
    text = line.removeprefix(_PREFIX).strip()
    return text, "; ".join(problems_with(question, text)) or None
