"""Why RailCap helps or harms in a setting: how often responses are on the rail, and what follows.

Every measure is a ratio of two sums over questions; its interval is a bootstrap interval over
questions, leaked and unleaked ones separately.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from zerogap.data.token_kinds import KINDS
from zerogap.metrics import observed_and_resampled
from zerogap.metrics.bootstrap import SHARE, with_interval
from zerogap.metrics.same_questions import probabilities

CLEAN = "clean"
COLUMNS = ["responses", "subset", "measure", "kind", "value", "ci_low", "ci_high"]
ALL = "all"
POSITIVE = (0.0, np.inf)
BOUNDS = {"rail_share": SHARE, "drawn": SHARE}  # the other measures are only positive

Ratios = Mapping[tuple[str, str], tuple[pd.Series, pd.Series]]  # (measure, kind) → two sums


def diagnostics(
    rail: pd.DataFrame,
    recovery: pd.DataFrame,
    clean: pd.DataFrame,
    clean_batch2: pd.DataFrame,
    *,
    n_resamples: int = 2000,
    confidence_level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """The diagnostics of one setting.

    Args:
        rail: `rail` table.
        recovery: `recovery` table of the clean model.
        clean: `solve` table of the clean model's first batch. The recovery rate is over the
            questions that it solves at least once.
        clean_batch2: of its second batch, which gives their solve probability: in the first batch
            it is too high, since the questions were selected by it.
        n_resamples: Number of bootstrap resamples.
        confidence_level: Of the intervals.
        seed: Of the bootstrap.

    Returns:
        One row per value, `COLUMNS`, NaN without any step or question. `responses` is a strategy or
        "clean", `subset` is "leaked" or "unleaked", for the clean model "all". `kind` is "all" or a
        kind of token. Measures:

        - rail_share: share of steps on the rail;
        - rail_steps: steps on the rail per response, by kind of the rail token;
        - drawn: share of these steps at which the rail token was drawn;
        - distinct: distinct responses per question;
        - entropy: mean entropy (nats) of a greedy step;
        - recovery: share of the solve probability that responses keep after a forced runner-up, by
          kind of the token that it replaced.
    """
    clean, batch2 = clean.set_index("question_id"), clean_batch2.set_index("question_id")
    leaked = clean["leaked"].to_numpy(dtype=bool)
    draws = observed_and_resampled(leaked, n_resamples, np.random.default_rng(seed))
    everywhere = np.ones_like(leaked)
    groups: list[tuple[str, str, NDArray[np.bool_], Ratios]] = []
    for responses, table in rail.groupby("responses", sort=False):
        ratios = _rail_ratios(table.set_index("question_id").loc[clean.index])
        subsets = {"leaked": leaked, "unleaked": ~leaked}
        for subset, mask in ({ALL: everywhere} if responses == CLEAN else subsets).items():
            groups.append((str(responses), subset, mask, ratios))
    solved = (clean["n_correct"] > 0).to_numpy()
    groups.append((CLEAN, ALL, solved, _recovery_ratios(recovery, batch2.loc[clean.index])))
    rows = []
    for responses, subset, mask, ratios in groups:
        for (measure, kind), sums in ratios.items():
            above, below = (draws[:, mask] @ part.to_numpy(np.float64)[mask] for part in sums)
            values = np.divide(above, below, out=np.full(len(draws), np.nan), where=below > 0)
            cell = with_interval(values, confidence_level, BOUNDS.get(measure, POSITIVE))
            rows.append((responses, subset, measure, kind, *cell))
    return pd.DataFrame(rows, columns=COLUMNS)


def _rail_ratios(table: pd.DataFrame) -> Ratios:
    """The measures of one set of responses, by question."""
    rail, drawn = (
        {kind: table[f"{name}_{kind}"] for kind in KINDS}
        | {ALL: table[[f"{name}_{kind}" for kind in KINDS]].sum(axis=1)}
        for name in ("rail", "drawn")
    )
    return {
        ("rail_share", ALL): (rail[ALL], table["n_steps"]),
        ("distinct", ALL): (table["n_distinct"], pd.Series(1, table.index)),
        ("entropy", ALL): (table["greedy_entropy"], table["greedy_steps"]),
        **{("rail_steps", kind): (steps, table["n_responses"]) for kind, steps in rail.items()},
        **{("drawn", kind): (drawn[kind], steps) for kind, steps in rail.items()},
    }


def _recovery_ratios(recovery: pd.DataFrame, clean: pd.DataFrame) -> Ratios:
    """Right responses after a forced runner-up, and how many were to be expected without it."""
    expected = probabilities(clean)
    ratios = {}
    for kind in (ALL, *KINDS):
        rows = recovery if kind == ALL else recovery[recovery["kind"] == kind]
        counts = rows.groupby("question_id")["correct"].agg(["sum", "size"])
        counts = counts.reindex(clean.index, fill_value=0).astype(float)
        ratios["recovery", kind] = (counts["sum"], counts["size"] * expected)
    return ratios
