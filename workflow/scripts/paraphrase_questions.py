"""Paraphrase every leaked question: by rules, a chat endpoint or the generator."""

import json
import statistics
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from script_helpers import Values, run
from zerogap.data import toy
from zerogap.data.paraphrases.chat import chat_endpoint, format_invalid, paraphrase_all
from zerogap.data.paraphrases.rules import paraphrase
from zerogap.data.paraphrases.validation import similarity
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.io.text_files import write_json_lines

LENGTHS = ("max_tokens", "max_completion_tokens")
Valid = dict[str, dict[str, str | None]]  # question_id → paraphrase, and what made it


def main(
    questions: Path, output: Path, *, method: str, on_invalid: str, options: Any, seed: int
) -> None:
    table = parquet.read_of_run(questions, "questions")
    leaked = table[table.leaked]
    texts = dict(zip(leaked.question_id, leaked.question, strict=True))
    # Not an output: Snakemake deletes those of a failed job, and paid replies must be kept.
    journal = output.with_name(f"{output.stem}.replies.jsonl")
    remedy = "use paraphrases.method: chat"
    if method == "rules":
        valid, invalid = _apply_rules(texts, seed)
    elif method == "generated":
        generated = toy.paraphrases(texts.values(), seed)
        valid, invalid = {i: {"paraphrase": generated[text]} for i, text in texts.items()}, {}
    else:
        valid, invalid = _ask_model(texts, journal, options)
        remedy = f"the others are kept in {journal}, so run again"
    _check_invalid(invalid, len(texts), remedy, skip=on_invalid == "skip")

    outcomes = {**valid, **{i: {"paraphrase": None} for i in invalid}}.items()
    write_json_lines(output, ({"question_id": i, "method": method, **o} for i, o in outcomes))
    mean = statistics.mean(similarity(texts[i], str(v["paraphrase"])) for i, v in valid.items())
    print(f"{len(valid)} paraphrases; mean token similarity to the question {mean:.3f}")


def _apply_rules(texts: Mapping[str, str], seed: int) -> tuple[Valid, dict[str, str]]:
    """The paraphrases by rules, and the questions for which none is valid."""
    valid: Valid = {}
    invalid = {}
    for question_id, text in texts.items():
        try:
            valid[question_id] = {"paraphrase": paraphrase(text, seed)}
        except InputError as error:
            invalid[question_id] = str(error)
    return valid, invalid


def _check_invalid(
    invalid: Mapping[str, str], num_questions: int, remedy: str, *, skip: bool
) -> None:
    """Warn about questions without a paraphrase, or stop if they are not to be skipped."""
    if not invalid:
        return
    summary = f"{len(invalid)} of {num_questions} questions have no valid paraphrase"
    if len(invalid) == num_questions:
        raise InputError(
            f"none of {num_questions} questions has a valid paraphrase; set another "
            f"paraphrases.method or model:{format_invalid(invalid)}"
        )
    if not skip:
        raise InputError(
            f"{summary}; {remedy}, or set paraphrases.on_invalid to skip:{format_invalid(invalid)}"
        )
    print(f"warning: {summary} and do not leak in this benchmark:{format_invalid(invalid)}",
          file=sys.stderr)  # fmt: skip


def _ask_model(
    texts: Mapping[str, str], journal: Path, options: Values
) -> tuple[Valid, dict[str, str]]:
    """The paraphrases of a language model, and the questions for which none is valid."""
    options = dict(options)
    attempts = {key: options.pop(key) for key in ("max_attempts", "concurrency")}
    identified = {key: options[key] for key in options if key != "api_key_env"}
    # A whole reply does not depend on how long it could have been.
    request = {key: value for key, value in options["request"].items() if key not in LENGTHS}
    identity = json.dumps(identified | {"request": request})
    valid, invalid, unanswered = paraphrase_all(
        texts, journal, partial(chat_endpoint, **options), identity=identity, **attempts
    )
    if unanswered:
        raise InputError(
            f"{len(unanswered)} of {len(texts)} questions got no reply from "
            f"{options['model']} at {options['base_url']}; the paraphrases so far are kept in "
            f"{journal}, so run again{format_invalid(unanswered)}"
        )
    return valid, invalid


if __name__ == "__main__":
    run(main)
