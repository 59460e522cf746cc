"""Time of the metrics of one setting, by questions, samples and strategies.

python benchmarks/metric_scaling.py

All metrics with intervals from 2,000 resamples. Seconds of processor time on one thread, as in the
jobs of the workflow. A first run, which is not reported, takes what happens once.
"""

import os
import time
from collections.abc import Sequence

import common
import numpy as np
import pandas as pd

PLANS = (  # questions, samples, strategies
    (330, 50, 10), (660, 50, 10), (1319, 50, 10), (2638, 50, 10),
    (1319, 10, 10), (1319, 200, 10),
    (1319, 50, 5), (1319, 50, 20),
)  # fmt: skip


def main() -> None:
    """Measure all plans and publish the table."""
    args = common.output_parser(__doc__).parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    seconds = common.in_child(__file__, plans=PLANS)
    common.publish(
        "Metrics of one setting, with 2,000 resamples",
        ["questions", "samples", "strategies", "seconds"],
        [[*map(str, plan), f"{took:.2f}"] for plan, took in zip(PLANS, seconds, strict=True)],
        args.output,
    )


def measure(plans: Sequence[tuple[int, int, int]]) -> list[float]:
    """Seconds of every plan (questions, samples, strategies)."""
    from zerogap.metrics.evaluate import evaluate

    seconds = []
    for questions, samples, strategies in [plans[0], *plans]:
        names = ["identity", *(f"strategy{k}" for k in range(1, strategies))]
        clean, *tables = (solve_table(questions, samples, k) for k in range(strategies + 1))
        start = time.process_time()
        evaluate("model", "benchmark", clean, dict(zip(names, tables, strict=True)))
        seconds.append(time.process_time() - start)
    return seconds[1:]


def solve_table(questions: int, samples: int, seed: int) -> pd.DataFrame:
    """A simulated `solve` table; half of the questions are leaked."""
    rng = np.random.default_rng(seed)
    n_correct = rng.binomial(samples, rng.beta(0.9, 1.2, questions))
    return pd.DataFrame(
        {
            "question_id": [f"test-{k:04}" for k in range(questions)],
            "n_correct": n_correct,
            "n_samples": samples,
            "first_correct": rng.random(questions) < n_correct / samples,
            "leaked": np.arange(questions) < questions // 2,
        }
    )


if __name__ == "__main__":
    common.run(main, measure)
