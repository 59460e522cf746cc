"""SA-PPG as a function of the number of strata B and of the number of samples m.

Does the conclusion depend on either? A smaller m is simulated with the existing responses: m of
them without replacement, which leaves a hypergeometric number of correct ones, so that counts
suffice.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from zerogap.errors import InputError
from zerogap.metrics.definitions import sa_ppg
from zerogap.metrics.gaps import Counts
from zerogap.metrics.same_questions import by_question, in_order

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
    """SA-PPG of every strategy for each B with all samples, and for each m with `bins` strata.

    Args:
        clean: `solve` table of the reference.
        strategies: Name → `solve` table of the same questions, in any order.
        bins: The B at which m is varied.
        bins_to_try: Values of B.
        samples_to_try: Values of m. Those above the reference's largest are left out, and that one
            itself is added. A question with fewer samples than m keeps all of them: after TED, a
            small m leaves more surviving responses than sampling m new responses would.
        repeats: Number of random subsamples per m. Strategies share the reference's subsamples.
        seed: Of the subsampling.

    Returns:
        One row per strategy and value: ``varied`` is ``bins`` or ``samples``; ``value`` is SA-PPG,
        its mean over the repeats where m is varied, and ``sd`` their standard deviation (0 where
        all responses are used).

    Raises:
        InputError: As `zerogap.metrics.sa_ppg`; also if the tables have different questions, or an
            m or `repeats` is below 1.
    """
    if repeats < 1 or min(samples_to_try, default=1) < 1:
        raise InputError("repeats and all numbers of samples must be at least 1")
    clean = by_question(clean, "clean")
    reference = _counts(clean)
    counts = {
        name: _counts(in_order(by_question(table, name), clean.index, name))
        for name, table in strategies.items()
    }
    largest = int(reference[1].max())
    rows = [
        (name, "bins", b, largest, sa_ppg(*strategy, *reference, bins=b), 0.0)
        for name, strategy in counts.items()
        for b in bins_to_try
    ]
    sizes = sorted({m for m in samples_to_try if m < largest} | {largest})
    rng = np.random.default_rng(seed)
    values: dict[tuple[str, int], list[float]] = {(name, m): [] for name in counts for m in sizes}
    for m in sizes:
        for _ in range(repeats):
            fewer = _subsample(*reference, m, rng)
            for name, strategy in counts.items():
                value = sa_ppg(*_subsample(*strategy, m, rng), *fewer, bins)
                values[name, m].append(value)
    rows += [
        (name, "samples", bins, m, float(np.mean(repeated)), float(np.std(repeated)))
        for (name, m), repeated in values.items()
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _counts(table: pd.DataFrame) -> tuple[Counts, Counts]:
    return table["n_correct"].to_numpy(np.int64), table["n_samples"].to_numpy(np.int64)


def _subsample(
    correct: Counts, samples: Counts, m: int, rng: np.random.Generator
) -> tuple[Counts, Counts]:
    """Counts of m responses per question, drawn without replacement."""
    sizes = np.minimum(samples, m)
    return rng.hypergeometric(correct, samples - correct, sizes), sizes
