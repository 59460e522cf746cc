"""Write the example's files. The responses are simulated; no model is involved.

Each question has a solve probability under the clean model. Half of the questions are leaked, which
raises it; "railcap" removes most of the rise and does a little damage everywhere. Every response is
then a coin flip. The numbers illustrate the file formats and say nothing about any strategy.
"""

import csv
import json
from pathlib import Path

import numpy as np

N_QUESTIONS, N_RESPONSES, SEED = 24, 20, 7


def main(folder: Path = Path(__file__).parent) -> None:
    """Write the files to a folder."""
    rng = np.random.default_rng(SEED)
    ids = [f"q{k:02d}" for k in range(N_QUESTIONS)]
    leaked = np.arange(N_QUESTIONS) < N_QUESTIONS // 2
    clean = np.where(rng.random(N_QUESTIONS) < 0.25, 0, rng.beta(0.9, 1.2, N_QUESTIONS))
    inflation = np.where(leaked, 0.8 * (1 - clean), 0)
    probabilities = {
        "clean": clean,
        "identity": clean + inflation,
        "railcap": 0.9 * (clean + 0.2 * inflation),
        "clean_batch2": clean,
    }
    correct = {
        name: rng.random((N_QUESTIONS, N_RESPONSES)) < probability[:, None]
        for name, probability in probabilities.items()
    }
    for name in ("clean", "identity"):
        write_responses(folder / f"{name}.jsonl", ids, correct[name])
    for name in ("railcap", "clean_batch2"):
        write_counts(folder / f"{name}.csv", ids, correct[name])
    lines = [question for question, is_leaked in zip(ids, leaked, strict=True) if is_leaked]
    (folder / "leaked.txt").write_text("\n".join(lines) + "\n")


def write_responses(path: Path, ids: list[str], correct: np.ndarray) -> None:
    """One line per response."""
    with path.open("w") as file:
        for question, marks in zip(ids, correct.tolist(), strict=True):
            for sample, mark in enumerate(marks):
                row = {"question_id": question, "sample_id": sample, "correct": mark}
                file.write(json.dumps(row) + "\n")


def write_counts(path: Path, ids: list[str], correct: np.ndarray) -> None:
    """One line per question."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["question_id", "n_correct", "n_samples", "first_correct"])
        for question, marks in zip(ids, correct, strict=True):
            writer.writerow([question, marks.sum(), N_RESPONSES, int(marks[0])])


if __name__ == "__main__":
    main()
