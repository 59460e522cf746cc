"""A paraphrase of every leaked question (PQ): by rule, by a chat endpoint or by a local model."""

import argparse
import json
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from arguments import json_argument, run
from zerogap import gpus
from zerogap.data.paraphrases.llm import format_invalid, paraphrase_all
from zerogap.data.paraphrases.rules import paraphrase
from zerogap.data.paraphrases.validation import similarity
from zerogap.errors import InputError
from zerogap.io import parquet


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument(
        "--paraphrases",
        type=json_argument,
        required=True,
        help='{"method": "rules"}, {"method": "chat", "base_url", "model", "api_key_env", '
        '"concurrency", "max_attempts", "on_invalid"} or {"method": "local", "model", "revision", "dtype", '
        '"temperature", "max_new_tokens", "max_attempts", "on_invalid"}',
    )
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args(argv)

    table = parquet.read(args.questions, "questions")
    leaked = table[table.leaked]
    texts = dict(zip(leaked.question_id, leaked.question, strict=True))
    # Beside the output, which a workflow deletes when a job fails: paid replies must stay.
    journal = args.output.with_name(f"{args.output.stem}.journal.jsonl")
    method = args.paraphrases["method"]
    invalid = {}
    if method == "rules":
        found = {i: paraphrase(text, args.seed) for i, text in texts.items()}
    else:
        found, invalid = _asked(texts, journal, args.paraphrases, args.seed)

    with parquet.atomic(args.output) as temporary, temporary.open("w", encoding="utf-8") as file:
        for i, text in {**found, **dict.fromkeys(invalid)}.items():
            entry = {"question_id": i, "paraphrase": text, "method": method}
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
    alike = statistics.mean(similarity(texts[i], text) for i, text in found.items())
    print(f"{len(found)} paraphrases; mean token similarity to the question {alike:.3f}")


def _asked(
    texts: Mapping[str, str], journal: Path, options: Mapping[str, Any], seed: int
) -> tuple[dict[str, str], dict[str, str]]:
    """The paraphrases of a language model, and the questions that are left out for want of one."""
    if options["method"] == "chat":
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
            seed=seed,
        )
    found, invalid = paraphrase_all(
        texts,
        journal,
        ask,
        model=name,
        max_attempts=options["max_attempts"],
        concurrency=options.get("concurrency", 1),
    )
    summary = f"{len(invalid)} of {len(texts)} questions have no valid paraphrase"
    if invalid and (options["on_invalid"] == "error" or not found):
        raise InputError(
            f"{summary}; the others are kept in {journal}; run again, or set "
            f"paraphrases.on_invalid to skip:{format_invalid(invalid)}"
        )
    if invalid:
        print(f"warning: {summary} and do not leak:{format_invalid(invalid)}", file=sys.stderr)
    return found, invalid


if __name__ == "__main__":
    run(main)
