"""What metrics and tables of a thousand cells of 1,319 questions and 50 samples cost.

python benchmarks/cell_costs.py

A run of 100 settings with ten strategies each. Every stage whose time grows with the responses or
the settings is measured once, on simulated responses that are all distinct, and multiplied by how
often a run of this size needs it. Seconds of processor time on one thread, as in the jobs of the
workflow.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import common
import numpy as np
import pandas as pd
from metric_scaling import solve_table
from score_files import QUESTIONS, SAMPLES, responses

SETTINGS, STRATEGIES = 100, 10
JOBS_PER_SETTING = 3  # make_all_zero, measure_overlap, compute_metrics
NUM_TOKENS = 100  # of a response


def main() -> None:
    """Measure every stage and publish the table."""
    args = common.output_parser(__doc__).parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    stages = common.in_child(__file__, questions=QUESTIONS, samples=SAMPLES)
    rows = [
        [stage, f"{seconds:.2f}", f"{number:,}", f"{seconds * number:,.0f}"]
        for stage, (seconds, number) in stages.items()
    ]
    total = sum(seconds * number for seconds, number in stages.values())
    common.publish(
        f"Metrics and tables of {SETTINGS * STRATEGIES:,} cells",
        ["stage", "seconds, once", "times", "seconds"],
        [*rows, ["all", "", "", f"{total:,.0f}"]],
        args.output,
    )


def measure(questions: int, samples: int) -> dict[str, tuple[float, int]]:
    """Stage → its seconds, and how often a run needs it."""
    from zerogap.analysis.extraction_agreement import agreement
    from zerogap.analysis.overlap import overlap
    from zerogap.data.extraction import extraction_rule
    from zerogap.io import parquet
    from zerogap.metrics.evaluate import evaluate

    clean, *tables = (solve_table(questions, samples, k) for k in range(STRATEGIES + 1))
    names = ["identity", *(f"strategy{k}" for k in range(1, STRATEGIES))]
    strategies = dict(zip(names, tables, strict=True))
    asked = clean[["question_id", "leaked"]]
    gold = {f"test-{k:04}": str(k) for k in range(questions)}
    rule = extraction_rule("numeric")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "samples.parquet")
        table = samples_table(questions, samples)
        parquet.write(path, table, "samples", {})
        greedy = table.drop_duplicates("question_id")
        cells = SETTINGS * STRATEGIES
        return {
            "start of a job": (_start_seconds(), SETTINGS * JOBS_PER_SETTING),
            "metrics of a setting": (
                _seconds(lambda: evaluate("model", "benchmark", clean, strategies)),
                SETTINGS,
            ),
            "overlap of Identity with its trajectories": (
                _seconds(lambda: overlap(parquet.read(path, "samples"), greedy, asked)),
                SETTINGS,
            ),
            "table of costs, a cell": (
                _seconds(lambda: parquet.read(path, "samples")["token_ids"].map(len).sum()),
                cells,
            ),
            "table of extraction rules, a cell": (
                _seconds(lambda: agreement([parquet.read(path, "samples")], gold, rule)),
                cells,
            ),
        }


def samples_table(questions: int, samples: int) -> pd.DataFrame:
    """A simulated `samples` table."""
    table = responses(questions, samples, seed=0)
    token_ids = np.random.default_rng(0).integers(0, 32000, (len(table), NUM_TOKENS))
    return table.rename(columns={"response": "text"}).assign(
        token_ids=list(token_ids),
        answer=table["response"].str.extract(r"([0-9]+)\.$")[0],
        extractor="the_answer_is",
        n_tokens=NUM_TOKENS,
        finish_reason="eos",
    )


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _start_seconds() -> float:
    """The start of a process that imports what the metrics' jobs import."""
    subprocess.run(
        [sys.executable, "-c", "import zerogap.metrics.evaluate, zerogap.io.parquet"],
        env=os.environ | {"PYTHONPATH": str(common.ROOT / "workflow")},
        check=True,
    )
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    common.run(main, measure)
