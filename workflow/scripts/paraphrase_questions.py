"""Paraphrase every leaked question: by rules, by a chat endpoint or by a local model."""

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from script_helpers import parse_arguments, run
from zerogap import gpus
from zerogap.data.paraphrases.llm import format_invalid, paraphrase_all
from zerogap.data.paraphrases.rules import paraphrase
from zerogap.data.paraphrases.validation import similarity
from zerogap.errors import InputError
from zerogap.io import parquet


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(__doc__, "questions", "output", argv=argv)
    parameters = args.parameters

    table = parquet.read(args.questions, "questions")
    leaked = table[table.leaked]
    texts = dict(zip(leaked.question_id, leaked.question, strict=True))
    # Not an output: Snakemake deletes those of a failed job, and paid replies must be kept.
    journal = args.output.with_name(f"{args.output.stem}.journal.jsonl")
    invalid: Mapping[str, str] = {}
    if parameters["method"] == "rules":
        paraphrases = {i: paraphrase(text, parameters["seed"]) for i, text in texts.items()}
    else:
        paraphrases, invalid = _ask_model(texts, journal, parameters)

    with parquet.atomic(args.output) as temporary, temporary.open("w", encoding="utf-8") as file:
        for i, text in {**paraphrases, **dict.fromkeys(invalid)}.items():
            entry = {"question_id": i, "paraphrase": text, "method": parameters["method"]}
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
    mean = statistics.mean(similarity(texts[i], text) for i, text in paraphrases.items())
    print(f"{len(paraphrases)} paraphrases; mean token similarity to the question {mean:.3f}")


def _ask_model(
    texts: Mapping[str, str], journal: Path, parameters: Mapping[str, Any]
) -> tuple[dict[str, str], dict[str, str]]:
    """The paraphrases of a language model, and the questions for which none is valid."""
    options = parameters["options"]
    if parameters["method"] == "chat":
        from zerogap.data.paraphrases.chat_endpoint import chat_endpoint

        name = options["model"]
        ask = chat_endpoint(options["base_url"], name, options["api_key_env"])
    else:
        from zerogap.data.paraphrases.chat_model import local_chat_model  # torch takes seconds

        gpus.claim()
        name = f"{options['model']}@{options['revision']}"
        ask = local_chat_model(
            options["model"],
            options["revision"],
            dtype=options["dtype"],
            temperature=options["temperature"],
            max_new_tokens=options["max_new_tokens"],
            seed=parameters["seed"],
        )
    paraphrases, invalid, unanswered = paraphrase_all(
        texts,
        journal,
        ask,
        model=name,
        max_attempts=options["max_attempts"],
        concurrency=options.get("concurrency", 1),
    )
    if unanswered:
        raise InputError(
            f"{len(unanswered)} of {len(texts)} questions got no reply from {name}; the "
            f"paraphrases so far are kept in {journal}, so run again{format_invalid(unanswered)}"
        )
    summary = f"{len(invalid)} of {len(texts)} questions have no valid paraphrase"
    if invalid and (parameters["on_invalid"] == "error" or not paraphrases):
        raise InputError(
            f"{summary}; the others are kept in {journal}, so run again, or set "
            f"paraphrases.on_invalid to skip:{format_invalid(invalid)}"
        )
    if invalid:
        print(f"warning: {summary} and do not leak in this benchmark:{format_invalid(invalid)}",
              file=sys.stderr)  # fmt: skip
    return paraphrases, invalid


if __name__ == "__main__":
    run(main)
