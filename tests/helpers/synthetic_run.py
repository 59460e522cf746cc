"""Synthetic tables of a finished run for the tests of the reports.

The leaked half is inflated; each strategy removes some of the inflation and does some damage.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from helpers.neuron_tables import neurons_table
from zerogap.data.token_kinds import KINDS
from zerogap.io import parquet
from zerogap.metrics.evaluate import evaluate, rows_about
from zerogap.pipeline import jobs, targets
from zerogap.reporting.metric_table import Labels

LABELS = Labels(
    models={"llama2": "Llama2", "gemma": "Gemma", "pythia": "Pythia"},
    benchmarks={"gsm8k": "GSM8K", "pq": "PQ"},
    configurations={
        **{"railcap_n1": "n=1", "railcap_n3": "n=3", "railcap": "n=4", "railcap_n5": "n=5"},
        **{"railcap_n7": "n=7", "railcap_ban": "n=4, ban"},
    },
)
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
    "railcap_first": (0.78, 0.12),
    "ted_unfiltered": (0.05, 0.0),
    "lne_blocking_nearest": (0.65, 0.4),
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
            variants = ("railcap_", "ted_", "lne_blocking_")
            strategies = {k: v for k, v in strategies.items() if not k.startswith(variants)}
        parts.append(evaluate("llama2", benchmark, clean, strategies, bins=10, n_resamples=40))
    return pd.concat(parts, ignore_index=True)


def overlap_table(n=120, m=50, seed=0):
    rng = np.random.default_rng(seed)
    leaked = np.arange(n) < n // 2
    centre = np.where(leaked, rng.beta(18, 2, n), rng.beta(6, 6, n))
    rouge_l = np.clip(np.repeat(centre, m) + rng.normal(0, 0.1, n * m), 0, 1)
    return _responses(n, m).assign(leaked=np.repeat(leaked, m), rouge_l=rouge_l)


def rank_table(n=120, steps=10, seed=0):
    rng = np.random.default_rng(seed)
    leaked = np.repeat(np.arange(n) < n // 2, steps)
    disagree = rng.random(n * steps) < np.where(leaked, 0.3, 0.2)
    rank = np.where(disagree, 2 + rng.geometric(0.45, n * steps) - 1, 1)
    table = pd.DataFrame({"question_id": np.repeat(_ids(n), steps), "leaked": leaked})
    step, clean_token = np.tile(np.arange(1, steps + 1), n), rng.integers(0, 99, n * steps)
    return table.assign(step=step, clean_token=clean_token, rank=rank)


def rail_table(responses=("clean", "identity", "railcap"), n=120, m=50, seed=0):
    """Responses of 40 steps, on the rail in about half of them where the question is leaked."""
    rng = np.random.default_rng(seed)
    leaked = np.arange(n) < n // 2
    parts = []
    for name in responses:
        part = pd.DataFrame({"question_id": _ids(n), "leaked": leaked})
        part = part.assign(
            responses=name, n_responses=m, n_distinct=1 + rng.binomial(m - 1, 0.5, n)
        )
        part = part.assign(n_steps=40 * m, greedy_steps=40, greedy_entropy=rng.uniform(4, 20, n))
        for kind, steps in zip(KINDS, (8, 4, 2, 6, 1), strict=True):
            rail = rng.binomial(steps * m, np.where(leaked, 0.9, 0.5))
            part[f"rail_{kind}"], part[f"drawn_{kind}"] = rail, rng.binomial(rail, 0.6)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def recovery_table(n=120, m=10, seed=0):
    rng = np.random.default_rng(seed)
    step, kind = rng.integers(0, 40, n * m), rng.choice(KINDS, n * m)
    return _responses(n, m).assign(
        step=step, kind=kind, token_ids=[[1, 2, 3]] * (n * m), text=" The answer is 1.",
        correct=rng.random(n * m) < 0.2,
    )  # fmt: skip


def _ids(n):
    return [f"test-{k}" for k in range(n)]


def _responses(n, m):
    """The keys of m responses to n questions."""
    return pd.DataFrame(
        {"question_id": np.repeat(_ids(n), m), "sample_id": np.tile(np.arange(m), n)}
    )


def _solve(rng, p, m, leaked):
    n_correct = rng.binomial(m, p)
    first_correct = rng.random(len(p)) < n_correct / m
    return pd.DataFrame({"question_id": _ids(len(p))}).assign(
        n_correct=n_correct, n_samples=m, first_correct=first_correct, leaked=leaked
    )


def samples_table(n=120, m=50, seed=0):
    """Responses of the form "The answer is K.", half of them correct."""
    rng = np.random.default_rng(seed)
    correct = rng.random(n * m) < 0.5
    numbers = np.repeat(np.arange(n), m) + ~correct
    return _responses(n, m).assign(
        token_ids=[[1, 2, 3]] * (n * m), text=[f" The answer is {number}." for number in numbers],
        answer=numbers.astype(str), extractor="numeric", correct=correct, n_tokens=3,
        finish_reason="eos",
    )  # fmt: skip


def questions_table(n=120):
    """Questions whose answers are 0, 1, 2 and so on; the first half is leaked."""
    return pd.DataFrame({"question_id": _ids(n)}).assign(
        question="How many?", rationale="Count.", gold=[str(k) for k in range(n)],
        leaked=np.arange(n) < n // 2, paraphrase=None,
    )  # fmt: skip


def write_run(config, n=20, m=5):
    """Write all files that the report of a run reads, below the working directory."""
    for benchmark in config.benchmarks:
        path = Path("results", config.run, "data", benchmark, "questions.parquet")
        _write(path, questions_table(n), "questions")
    for model in config.models:
        for variant in config.variants:
            loss = Path("results", config.run, model, variant, "loss.tsv")
            loss.parent.mkdir(parents=True, exist_ok=True)
            loss.touch()
        for variant in config.clean_variants:
            folder = Path("results", config.run, model, variant)
            clean, strategies = solve_tables(n, m)
            _write(folder / "greedy.parquet", _greedy_table(n), "greedy")
            _write(folder / "overlap.parquet", overlap_table(n, m), "overlap")
            _write(folder / "recovery.parquet", recovery_table(n), "recovery")
            for batch, solve in (("batch1", clean), ("batch2", strategies["clean_batch2"])):
                _write(folder / "cells" / batch / "solve.parquet", solve, "solve")
                _write(folder / "cells" / batch / "samples.parquet", samples_table(n, m), "samples")
        for benchmark in config.benchmarks:
            _write_setting(config, model, benchmark, n, m)


def write_timings(config, seconds=1.5):
    """Write the timing files of a run: the same seconds for every job and shard."""
    for timed in (*targets.timed_jobs(config), *targets.preparation_jobs(config)):
        for timing in map(Path, timed.timings):
            timing.parent.mkdir(parents=True, exist_ok=True)
            timing.write_text(f"s\th:m:s\tmax_rss\n{seconds}\t0:00:00\tNA\n")


def _write_setting(config, model, benchmark, n, m):
    folder = Path("results", config.run, model, benchmark)
    clean, tables = solve_tables(n, m, benchmark=benchmark)
    compared = jobs.compared_strategies(config, model, benchmark)
    for strategy in compared:
        _write(folder / "cells" / strategy / "solve.parquet", tables[strategy], "solve")
        _write(folder / "cells" / strategy / "samples.parquet", samples_table(n, m), "samples")
    _write(folder / "cells/all_zero/solve.parquet", tables["all_zero"], "solve")
    options = {"bins": 5, "n_resamples": 40}
    strategies = {name: tables[name] for name in targets.solve_tables(config, model, benchmark)}
    metrics = evaluate(model, benchmark, clean, strategies, **options)
    _write(folder / "metrics.parquet", metrics, "metrics")
    if names := [name for name in compared if name in config.ablation]:
        strategies |= {name: tables[name] for name in names}
        metrics = rows_about(evaluate(model, benchmark, clean, strategies, **options), names)
        _write(folder / "ablation_metrics.parquet", metrics, "metrics")
    _write(folder / "overlap.parquet", overlap_table(n, m), "overlap")
    _write(folder / "ranks.parquet", rank_table(n), "ranks")
    _write(folder / "rail.parquet", rail_table(n=n, m=m), "rail")
    _write(folder / "greedy.parquet", _greedy_table(n), "greedy")
    _write(folder / "neurons.parquet", neurons_table(0, [0]), "neurons")


def _greedy_table(n):
    return pd.DataFrame({"question_id": _ids(n)}).assign(
        token_ids=[[1, 2]] * n, text=" The answer is 1.", answer="1", extractor="numeric",
        correct=False, entropy=[[0.5, 0.5]] * n, finish_reason="eos",
    )  # fmt: skip


def _write(path, table, contract):
    path.parent.mkdir(parents=True, exist_ok=True)
    made_by = {"commit": "abc", "packages": {"torch": "1"}}
    parquet.write(path, table, contract, made_by | _place(path))


def _place(path):
    """What a file's provenance says of its place: results/RUN/MODEL/VARIANT/cells/CELL."""
    _, run, model, variant, *cell = path.parts[:-1]
    if model == "data":
        return {"run": run, "benchmark": variant}
    batch_or_strategy = "batch" if variant.startswith("clean_") else "strategy"
    return {"run": run, "model": model, "variant": variant} | (
        {batch_or_strategy: cell[-1]} if cell else {}
    )
