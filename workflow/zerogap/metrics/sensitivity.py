"""SA-PPG as a function of the number of strata B and of the samples a question m.

Does the verdict depend on either? A smaller m is had from the responses at hand: m of them without
replacement, which leaves a hypergeometric number of correct ones, so counts are all it takes.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from zerogap.errors import InputError
from zerogap.metrics import gaps
from zerogap.metrics.gaps import Counts

BINS = (1, 2, 5, 10, 20, 50, 100)
SAMPLES = (5, 10, 20, 30, 40, 50)
COLUMNS = ["strategy", "varied", "bins", "samples", "value", "sd"]


def sensitivity(
    clean: pd.DataFrame,
    strategies: Mapping[str, pd.DataFrame],
    *,
    bins: int = 50,
    bins_to_try: Sequence[int] = BINS,
    samples_to_try: Sequence[int] = SAMPLES,
    repeats: int = 20,
    seed: int = 0,
) -> pd.DataFrame:
    """SA-PPG of every strategy at each B with all samples, and at each m with `bins` strata.

    Args:
        clean: `solve` table of the reference.
        strategies: name → `solve` table of the same questions, in any order.
        bins: the B that m is varied at.
        bins_to_try: values of B.
        samples_to_try: values of m. Those above the reference's largest are left out; that one
            itself is added. A question with fewer samples than m keeps all of them: after TED,
            a small m leaves more survivors than sampling m responses anew would.
        repeats, seed: of the subsampling. Strategies share the reference's subsamples.

    Returns:
        A row a strategy and value: ``varied`` is ``bins`` or ``samples``; ``value`` is SA-PPG, its
        mean over the repeats where m is varied, and ``sd`` their standard deviation (0 where every
        response is used).

    Raises:
        InputError: as `gaps.sa_ppg`; tables of other questions; an m or `repeats` below 1.
    """
    if repeats < 1 or min(samples_to_try, default=1) < 1:
        raise InputError("repeats and every number of samples to try have to be at least 1")
    clean = clean.set_index("question_id")
    reference = _counts(clean)
    columns = {}
    for name, table in strategies.items():
        table = table.set_index("question_id")
        if len(table) != len(clean) or set(table.index) != set(clean.index):
            raise InputError(f"{name}: its questions are not the clean table's")
        columns[name] = _counts(table.loc[clean.index])

    largest = int(reference[1].max())
    rows = [
        (name, "bins", b, largest, gaps.sa_ppg(*column, *reference, bins=b), 0.0)
        for name, column in columns.items()
        for b in bins_to_try
    ]
    tried = sorted({m for m in samples_to_try if m < largest} | {largest})
    found: dict[tuple[str, int], list[float]] = {(name, m): [] for name in columns for m in tried}
    rng = np.random.default_rng(seed)
    for m in tried:
        for _ in range(repeats):
            fewer = _subsample(*reference, m, rng)
            for name, column in columns.items():
                reading = gaps.sa_ppg(*_subsample(*column, m, rng), *fewer, bins=bins)
                found[name, m].append(reading)
    rows += [
        (name, "samples", bins, m, float(np.mean(values)), float(np.std(values)))
        for (name, m), values in found.items()
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _counts(table: pd.DataFrame) -> tuple[Counts, Counts]:
    return table["n_correct"].to_numpy(np.int64), table["n_samples"].to_numpy(np.int64)


def _subsample(
    correct: Counts, samples: Counts, m: int, rng: np.random.Generator
) -> tuple[Counts, Counts]:
    """Counts of m responses a question, drawn without replacement."""
    kept = np.minimum(samples, m)
    return rng.hypergeometric(correct, samples - correct, kept), kept
