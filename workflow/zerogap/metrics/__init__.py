"""SA-PPG and the other metrics, from counts of correct responses (numpy and pandas only)."""

from zerogap.metrics.bootstrap import (
    interval,
    observed_and_resampled,
    plain_weights,
    question_weights,
    redraw,
    simultaneous,
    stratified_means,
    weighted_means,
)
from zerogap.metrics.comparison import ppg
from zerogap.metrics.definitions import (
    a_ppg,
    delta_minus,
    delta_plus,
    g_ap,
    g_app,
    s_delta_minus,
    s_delta_plus,
    sa_ppg,
    sa_ppg_corrected,
)
from zerogap.metrics.gaps import solve_probability, strata, stratum_weights

__all__ = [
    "a_ppg",
    "delta_minus",
    "delta_plus",
    "g_ap",
    "g_app",
    "interval",
    "observed_and_resampled",
    "plain_weights",
    "ppg",
    "question_weights",
    "redraw",
    "s_delta_minus",
    "s_delta_plus",
    "sa_ppg",
    "sa_ppg_corrected",
    "simultaneous",
    "solve_probability",
    "strata",
    "stratified_means",
    "stratum_weights",
    "weighted_means",
]
