"""Write a benchmark's test questions, with the paraphrases of the leaked ones if it leaks those."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from script_helpers import Values, run
from zerogap.data.paraphrases.validation import problems_with
from zerogap.data.questions import with_paraphrases
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.io.text_files import json_lines, read_text


def main(split: Path, paraphrases: Sequence[Path], output: Path, *, metadata: Values) -> None:
    table = parquet.read_of_run(split, "questions")
    made_by = {**parquet.provenance(split), **metadata}
    for path in paraphrases:
        entries = [entry for _, entry in json_lines(path, read_text(path), dict)]
        table = with_paraphrases(table, {e["question_id"]: e["paraphrase"] for e in entries})
        _check(table, path)
        made_by["paraphrases"] = sorted({entry["method"] for entry in entries})
        made_by["served_models"] = sorted(
            {
                f"{entry['served_model']}, {entry['fingerprint'] or 'no fingerprint'}"
                for entry in entries
                if "served_model" in entry
            }
        )
        made_by["left_out"] = [e["question_id"] for e in entries if e["paraphrase"] is None]
    parquet.write(output, table, "questions", made_by)
    print(f"{len(table)} questions, {table.leaked.sum()} leaked")
    if left_out := made_by.get("left_out"):
        print(
            f"{len(left_out)} questions have no valid paraphrase and do not leak: "
            f"{', '.join(left_out)}"
        )


def _check(table: pd.DataFrame, path: Path) -> None:
    for row in table[table.leaked].itertuples():
        if problems := problems_with(row.question, row.paraphrase):
            raise InputError(f"{path}: {row.question_id}: {'; '.join(problems)}")


if __name__ == "__main__":
    run(main)
