"""Write a benchmark's test questions, with the paraphrases of the leaked ones if it leaks those."""

import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from script_helpers import parse_arguments, run
from zerogap.data.paraphrases.validation import problems_with
from zerogap.data.questions import with_paraphrases
from zerogap.errors import InputError
from zerogap.io import parquet


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(__doc__, "split", "output", lists=("paraphrases",), argv=argv)

    table = parquet.read_of_run(args.split, "questions")
    metadata = {**parquet.provenance(args.split), **args.parameters["metadata"]}
    for path in args.paraphrases:
        entries = _read(path)
        table = with_paraphrases(table, {e["question_id"]: e["paraphrase"] for e in entries})
        _check(table, path)
        metadata["paraphrases"] = sorted({entry["method"] for entry in entries})
        metadata["served_models"] = sorted(
            {
                f"{entry['served_model']}, {entry['fingerprint'] or 'no fingerprint'}"
                for entry in entries
                if "served_model" in entry
            }
        )
        metadata["left_out"] = [e["question_id"] for e in entries if e["paraphrase"] is None]
    parquet.write(args.output, table, "questions", metadata)
    print(f"{len(table)} questions, {table.leaked.sum()} leaked")
    if left_out := metadata.get("left_out"):
        print(
            f"{len(left_out)} questions have no valid paraphrase and do not leak: "
            f"{', '.join(left_out)}"
        )


def _read(path: Path) -> list[dict[str, str]]:
    lines = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def _check(table: pd.DataFrame, path: Path) -> None:
    for row in table[table.leaked].itertuples():
        if problems := problems_with(row.question, row.paraphrase):
            raise InputError(f"{path}: {row.question_id}: {'; '.join(problems)}")


if __name__ == "__main__":
    run(main)
