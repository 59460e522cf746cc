"""Synthetic solve, overlap and rank tables for the tests of the reports.

The leaked half is inflated; each strategy removes some of the inflation and does some damage.
"""

import numpy as np
import pandas as pd

from zerogap.metrics.evaluate import evaluate

# strategy: (fraction of the inflation removed, damage on every question)
STRATEGIES = {
    "identity": (0.0, 0.0),
    "ted": (0.05, 0.0),
    "shortcut": (0.45, 0.05),
    "lne_blocking": (0.6, 0.35),
    "railcap": (0.8, 0.12),
    "railcap_n1": (1.0, 0.5),
    "railcap_n3": (0.85, 0.2),
    "railcap_n5": (0.75, 0.12),
    "railcap_n7": (0.7, 0.1),
    "railcap_ban": (0.9, 0.3),
}


def solve_tables(n=120, m=50, seed=0, benchmark="gsm8k"):
    """Return the clean batch and the strategies' `solve` tables by name, with `clean_batch2`."""
    rng = np.random.default_rng(seed)
    leaked = np.arange(n) < n // 2
    clean = np.where(rng.random(n) < 0.25, 0.0, rng.beta(0.9, 1.2, n))
    strength = 0.85 if benchmark == "gsm8k" else 0.45
    inflation = np.where(leaked, (1 - clean) * rng.uniform(strength - 0.3, strength, n), 0)
    tables = {}
    for name, (removed, damage) in STRATEGIES.items():
        p = (clean + (1 - removed) * inflation) * (1 - damage * rng.random(n))
        tables[name] = _solve(rng, np.clip(p, 0, 1), m, leaked)
    ted = tables["ted"].sample(2, random_state=seed).index
    tables["ted"].loc[ted, ["n_correct", "n_samples", "first_correct"]] = 0, 0, False
    tables["clean_batch2"] = _solve(rng, clean, m, leaked)
    tables["all_zero"] = _solve(rng, np.zeros(n), m, leaked)
    return _solve(rng, clean, m, leaked), tables


def metrics_table():
    """Metric values of two benchmarks of one model, with the ablation in the first."""
    parts = []
    for benchmark in ("gsm8k", "pq"):
        clean, strategies = solve_tables(n=40, m=10, benchmark=benchmark)
        if benchmark == "pq":
            strategies = {k: v for k, v in strategies.items() if not k.startswith("railcap_")}
        parts.append(evaluate("llama2", benchmark, clean, strategies, bins=10, n_resamples=40))
    return pd.concat(parts, ignore_index=True)


def overlap_table(n=120, m=50, seed=0):
    rng = np.random.default_rng(seed)
    leaked = np.arange(n) < n // 2
    centre = np.where(leaked, rng.beta(18, 2, n), rng.beta(6, 6, n))
    return pd.DataFrame(
        {
            "question_id": np.repeat(_ids(n), m),
            "sample_id": np.tile(np.arange(m), n),
            "leaked": np.repeat(leaked, m),
            "rouge_l": np.clip(np.repeat(centre, m) + rng.normal(0, 0.1, n * m), 0, 1),
        }
    )


def rank_table(n=120, steps=10, seed=0):
    rng = np.random.default_rng(seed)
    leaked = np.repeat(np.arange(n) < n // 2, steps)
    disagree = rng.random(n * steps) < np.where(leaked, 0.3, 0.2)
    rank = np.where(disagree, 2 + rng.geometric(0.45, n * steps) - 1, 1)
    return pd.DataFrame(
        {
            "question_id": np.repeat(_ids(n), steps),
            "leaked": leaked,
            "step": np.tile(np.arange(1, steps + 1), n),
            "clean_token": rng.integers(0, 99, n * steps),
            "rank": rank,
        }
    )


def _ids(n):
    return [f"test-{k}" for k in range(n)]


def _solve(rng, p, m, leaked):
    n_correct = rng.binomial(m, p)
    return pd.DataFrame(
        {
            "question_id": _ids(len(p)),
            "n_correct": n_correct,
            "n_samples": m,
            "first_correct": rng.random(len(p)) < n_correct / m,
            "leaked": leaked,
        }
    )
