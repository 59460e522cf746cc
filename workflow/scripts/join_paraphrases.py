"""The test questions with the paraphrases of the leaked ones, each checked once more."""

import argparse
import json
from pathlib import Path

from arguments import run
from zerogap.data.paraphrases.validation import problems_with
from zerogap.data.questions import with_paraphrases
from zerogap.errors import InputError
from zerogap.io import parquet


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--paraphrases", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args(argv)

    table = parquet.read(args.questions, "questions")
    lines = args.paraphrases.read_text(encoding="utf-8").split("\n")
    entries = [json.loads(line) for line in lines if line]
    joined = with_paraphrases(table, {e["question_id"]: e["paraphrase"] for e in entries})
    for row in joined[joined.leaked].itertuples():
        if wrong := problems_with(row.question, row.paraphrase):
            raise InputError(f"{args.paraphrases}: {row.question_id}: {'; '.join(wrong)}")
    methods = sorted({entry["method"] for entry in entries})
    left_out = [entry["question_id"] for entry in entries if entry["paraphrase"] is None]
    facts = {**parquet.provenance(args.questions), "paraphrases": methods, "left_out": left_out}
    parquet.write(args.output, joined, "questions", facts)
    print(f"{len(joined)} questions, {joined.leaked.sum()} with a paraphrase")


if __name__ == "__main__":
    run(main)
