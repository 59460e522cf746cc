"""Make the example's files: simulated responses, no model answered anything.

Each question gets a solve probability for the clean model; half of the questions are leaked, which
raises it; "railcap" takes most of the rise back and does a little damage everywhere. Every response
is then a coin flip. The numbers show the file formats and say nothing about any strategy.
"""

import csv
import json
from pathlib import Path

import numpy as np

QUESTIONS, RESPONSES, SEED = 24, 20, 7


def main(folder: Path = Path(__file__).parent) -> None:
    rng = np.random.default_rng(SEED)
    ids = [f"q{k:02d}" for k in range(QUESTIONS)]
    leaked = np.arange(QUESTIONS) < QUESTIONS // 2
    clean = np.where(rng.random(QUESTIONS) < 0.25, 0, rng.beta(0.9, 1.2, QUESTIONS))
    rise = np.where(leaked, 0.8 * (1 - clean), 0)
    drawn = {
        name: rng.random((QUESTIONS, RESPONSES)) < chance[:, None]
        for name, chance in {
            "clean": clean,
            "identity": clean + rise,
            "railcap": 0.9 * (clean + 0.2 * rise),
            "clean_batch2": clean,
        }.items()
    }
    # A line a response.
    for name in ("clean", "identity"):
        with (folder / f"{name}.jsonl").open("w") as file:
            for question, marks in zip(ids, drawn[name].tolist(), strict=True):
                for sample, correct in enumerate(marks):
                    row = {"question_id": question, "sample_id": sample, "correct": correct}
                    file.write(json.dumps(row) + "\n")
    # A line a question.
    for name in ("railcap", "clean_batch2"):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["question_id", "n_correct", "n_samples", "first_correct"])
            for question, marks in zip(ids, drawn[name], strict=True):
                writer.writerow([question, marks.sum(), RESPONSES, int(marks[0])])
    lines = [question for question, flag in zip(ids, leaked, strict=True) if flag]
    (folder / "leaked.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
