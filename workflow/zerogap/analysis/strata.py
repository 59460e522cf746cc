"""Mean gaps by the clean model's solve probability: which questions SA-PPG comes from."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from zerogap import metrics
from zerogap.metrics import gaps
from zerogap.metrics.same_questions import in_order


class Ranges:
    """The strata of a clean model's `solve` table, joined into ranges of neighbours for a plot.

    There are at most `max_groups` ranges, equally wide if their number divides that of the strata.
    """

    def __init__(self, clean: pd.DataFrame, bins: int, max_groups: int = 10) -> None:
        self.clean = clean.set_index("question_id")
        self.stratum = gaps.strata(clean["n_correct"], clean["n_samples"], bins)  # 0 … bins-1
        self.bins, self.n_groups = bins, min(max_groups, bins)

    @property
    def centres(self) -> NDArray[np.float64]:
        """The middle of each range, as a solve probability; shape (n_groups,)."""
        group = self._group(np.arange(self.bins))
        middles = (np.arange(self.bins) + 0.5) / self.bins
        return np.bincount(group, middles) / np.bincount(group)

    @property
    def n_questions(self) -> NDArray[np.int64]:
        """Number of questions per range; shape (n_groups,)."""
        return np.bincount(self._group(self.stratum), minlength=self.n_groups)

    def mean_gaps(self, solve: pd.DataFrame) -> tuple[NDArray[np.float64], float]:
        """The mean |gap| of a strategy per range, and over all strata.

        Each is a plain mean over strata, so that the mean of the ranges, weighted by their strata,
        is SA-PPG.

        Returns:
            The means, shape (n_groups,), NaN where a range has no question; and SA-PPG.
        """
        solve = solve.set_index("question_id").loc[self.clean.index]
        clean_counts = self.clean["n_correct"], self.clean["n_samples"]
        gap = np.abs(metrics.ppg(solve["n_correct"], solve["n_samples"], *clean_counts))
        by_stratum = pd.Series(gap).groupby(self.stratum).mean()
        group = self._group(by_stratum.index.to_numpy())
        means = by_stratum.groupby(group).mean().reindex(range(self.n_groups))
        return np.asarray(means, dtype=np.float64), float(by_stratum.mean())

    def _group(self, stratum: NDArray[np.int64]) -> NDArray[np.int64]:
        return stratum * self.n_groups // self.bins


def values_by_bins(
    clean: pd.DataFrame, strategies: Mapping[str, pd.DataFrame], bins: int = 50
) -> pd.DataFrame:
    """SA-PPG of the same responses with several numbers of strata, from `solve` tables.

    Returns:
        One row per strategy: strategy, `a_ppg`, and for B of 5, 10 and `bins`, `sa_ppg_<B>`, the
        number `filled_<B>` of strata that have a question, and the number `single_<B>` of those
        that have one.
    """
    tables = in_order({"clean": clean, **strategies})
    reference = tables["clean"]["n_correct"], tables["clean"]["n_samples"]
    sizes = {
        number: np.unique(gaps.strata(*reference, number), return_counts=True)[1]
        for number in sorted({5, 10, bins})
    }
    rows = []
    for name in strategies:
        counts = (tables[name]["n_correct"], tables[name]["n_samples"], *reference)
        row: dict[str, object] = {"strategy": name, "a_ppg": metrics.a_ppg(*counts)}
        for number, size in sizes.items():
            row[f"sa_ppg_{number}"] = metrics.sa_ppg(*counts, bins=number)
            row |= {f"filled_{number}": len(size), f"single_{number}": int((size == 1).sum())}
        rows.append(row)
    return pd.DataFrame(rows)
