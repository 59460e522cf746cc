"""The distance from a clean model, if one was sampled: what `zerogap score` computes."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from zerogap.evaluation.collect import CLEAN
from zerogap.scoring import inputs
from zerogap.scoring import score as scoring

BINS = 50  # strata of SA-PPG (paper, section 5.1)
CONFIDENCE_LEVEL = 0.95
N_RESAMPLES = 2000


@dataclass(frozen=True)
class CleanComparison:
    """All strategies against the clean model.

    Attributes:
        metrics: the `metrics` table.
        summary: its main values (:func:`zerogap.scoring.score.summary`).
        notes: what a reader of the results should know.
    """

    metrics: pd.DataFrame
    summary: pd.DataFrame
    notes: tuple[str, ...] = ()


def compare_with_clean(files: Mapping[str, Path]) -> CleanComparison | None:
    """Compare the strategies with the clean model; None if there is none.

    Args:
        files: strategy → its file; the clean model's are "clean" and "clean_batch2".
    """
    if CLEAN not in files:
        return None
    loaded = {name: inputs.load(path) for name, path in files.items()}
    clean = loaded.pop(CLEAN)
    aligned = scoring.align(clean, loaded)
    metrics = scoring.score(
        aligned,
        clean.path.name,
        bins=BINS,
        n_resamples=N_RESAMPLES,
        confidence_level=CONFIDENCE_LEVEL,
        seed=0,
    )
    notes = (*aligned.notes, *scoring.strata_notes(aligned.clean, BINS))
    return CleanComparison(metrics, scoring.summary(metrics, aligned), notes)
