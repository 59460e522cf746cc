"""Time of `zerogap score` on twenty files of 65,950 responses, by their format.

python benchmarks/score_files.py

The texts of responses with gold answers are nearly all distinct; four extraction rules score each.
Seconds are those of the whole command, by the clock and of the processor.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import common
import numpy as np
import pandas as pd

QUESTIONS, SAMPLES = 1319, 50
FILES = 20
KINDS = {  # suffix of the files → what is in them
    "parquet": "correct, Parquet",
    "csv": "correct, CSV",
    "jsonl": "correct, JSON Lines",
    "texts": "response and gold, JSON Lines",
}


def main() -> None:
    """Score files of every format and publish the table."""
    args = common.output_parser(__doc__).parse_args()
    rows = []
    for kind, content in KINDS.items():
        result = common.in_child(__file__, kind=kind, files=FILES)
        memory = f"{result['bytes'] / 2**20:,.0f}"
        seconds, processor = (f"{result[key]:.1f}" for key in ("seconds", "processor"))
        rows.append([content, seconds, processor, memory])
    common.publish(
        f"`zerogap score` of {FILES} files with {QUESTIONS * SAMPLES:,} responses each",
        ["columns and format", "seconds", "processor, s", "memory of a process, MiB"],
        rows,
        args.output,
    )


def measure(
    kind: str, files: int, questions: int = QUESTIONS, samples: int = SAMPLES
) -> dict[str, Any]:
    """Seconds and peak memory of scoring so many files against the first of them."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"strategy{k}.{kind}") for k in range(files)]
        for seed, path in enumerate(paths):
            _write(path, responses(questions, samples, seed))
        start = time.perf_counter()
        subprocess.run(  # noqa: S603 (this package)
            [sys.executable, "-m", "zerogap", "score", "--clean", *map(str, paths)],
            env=os.environ | {"PYTHONPATH": str(common.ROOT / "workflow"), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        seconds = time.perf_counter() - start
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = usage.ru_utime + usage.ru_stime
    return {"seconds": seconds, "processor": processor, "bytes": usage.ru_maxrss * 1024}


def responses(questions: int, samples: int, seed: int) -> pd.DataFrame:
    """Simulated responses with the same solve probabilities in every file."""
    probability = np.random.default_rng(0).beta(0.9, 1.2, questions)
    rng = np.random.default_rng(seed)
    correct = rng.random(questions * samples) < np.repeat(probability, samples)
    gold = np.repeat(np.arange(questions), samples)
    answers = np.where(correct, gold, gold + rng.integers(1, 50, len(gold)))
    steps = rng.integers(2, 999, (len(gold), 2))
    return pd.DataFrame(
        {
            "question_id": [f"test-{number:04}" for number in gold],
            "sample_id": np.tile(np.arange(samples), questions),
            "correct": correct,
            "response": [
                f" She has {a} apples and buys {b} more for ${a}.50 each, so she has {a} + {b} = "
                f"{a + b} apples. She gives 12 of them to each friend. The answer is {answer}."
                for (a, b), answer in zip(steps.tolist(), answers, strict=True)
            ],
            "gold": gold.astype(str),
        }
    )


def _write(path: Path, table: pd.DataFrame) -> None:
    marked = table.drop(columns=["response", "gold"])
    match path.suffix:
        case ".parquet":
            marked.to_parquet(path)
        case ".csv":
            marked.to_csv(path, index=False)
        case ".jsonl":
            marked.to_json(path, orient="records", lines=True)
        case ".texts":
            table.drop(columns="correct").to_json(path, orient="records", lines=True)


if __name__ == "__main__":
    common.run(main, measure)
