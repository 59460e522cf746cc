"""Did contamination work? Whether a contaminated model memorised its leaked questions.

Two signs, both relative to the unleaked questions of the same model, which no training contained:

- *inflation*: the solve probability is above the clean model's on leaked questions, by more than on
  unleaked ones;
- *collapse*: responses follow the model's own greedy trajectory (ROUGE-L) more on leaked questions
  than on unleaked ones.

A strategy has something to undo only if there is inflation. Only if there is collapse has TED
something to act on, and does RailCap distinguish leaked questions from others. A sign is *weak* if
the interval of the difference is above zero, and *clear* if the value on leaked questions also
reaches its bound. A narrow language makes any model repeat itself, so collapse is clear only if
unleaked questions stay below a bound of their own. How far they disperse is also compared with the
clean model (*excess*): its responses, its greedy trajectories, the same unleaked questions.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from zerogap.errors import InputError
from zerogap.metrics import observed_and_resampled, plain_weights
from zerogap.metrics.bootstrap import SHARE, UNBOUNDED, with_interval
from zerogap.metrics.gaps import Array
from zerogap.metrics.same_questions import in_order, probabilities

DIFFERENCES = ("inflation", "collapse", "excess")
# Bounds of clear inflation and collapse. Figure 1 has no numbers: these are acceptance criteria of
# toy models, set when the first runs were known.
MIN_LEAKED_SOLVED = 0.9  # mean solve probability of leaked questions
MIN_LEAKED_ROUGE_L, MAX_UNLEAKED_ROUGE_L = 0.85, 0.65
# By the signs of inflation and collapse; any other pair is "weakly memorised".
VERDICTS = {("clear", "clear"): "memorised", ("absent", "absent"): "not memorised"}


def memorisation(
    clean: pd.DataFrame,
    identity: pd.DataFrame,
    overlap: pd.DataFrame,
    clean_overlap: pd.DataFrame,
    *,
    n_resamples: int = 2000,
    confidence_level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """One row for one contaminated model: the two signs with intervals, and the verdict.

    Args:
        clean: `solve` table of the clean model.
        identity: `solve` table of the contaminated model.
        overlap: `overlap` table of the contaminated model's samples.
        clean_overlap: `overlap` table of the clean model's samples with its own trajectories.
        n_resamples: Number of bootstrap resamples.
        confidence_level: Of the intervals.
        seed: Of the bootstrap.

    Returns:
        verdict (memorised, weakly memorised, not memorised), text, share_verbatim (the fraction of
        leaked responses with ROUGE-L 1) and, each with ci_low and ci_high columns, clean_leaked,
        identity_leaked, clean_unleaked, identity_unleaked (mean solve probabilities), inflation,
        rouge_leaked, rouge_unleaked, collapse, clean_rouge_unleaked and excess (see above).

    Raises:
        InputError: There are no leaked or no unleaked questions, or the tables have different
            questions.
    """
    overlaps = {"rouge": overlap, "clean_rouge": clean_overlap}
    means = {
        name: table.groupby("question_id")["rouge_l"].mean().reset_index()
        for name, table in overlaps.items()
    }
    tables = in_order({"clean": clean, "identity": identity, **means})
    leaked = tables["clean"]["leaked"].to_numpy(dtype=bool)
    if leaked.all() or not leaked.any():
        raise InputError("memorisation: needs both leaked and unleaked questions")
    draws = observed_and_resampled(leaked, n_resamples, np.random.default_rng(seed))
    row: dict[str, Any] = {}
    for name, values in _estimates(tables, leaked, draws).items():
        bounds = UNBOUNDED if name in DIFFERENCES else SHARE
        cell = with_interval(values, confidence_level, bounds)
        row |= dict(zip((name, f"{name}_ci_low", f"{name}_ci_high"), cell, strict=True))
    row["share_verbatim"] = float((overlap.loc[overlap["leaked"], "rouge_l"] == 1).mean())
    signs = _signs(row)
    row["verdict"] = VERDICTS.get((signs["inflation"], signs["collapse"]), "weakly memorised")
    row["text"] = _text(row, signs)
    return pd.DataFrame([row])


def _estimates(tables: Mapping[str, pd.DataFrame], leaked: Array, draws: Array) -> dict[str, Array]:
    """Every quantity: its point estimate, then its values in the resamples."""
    clean, identity = (probabilities(tables[name]) for name in ("clean", "identity"))
    rouge, clean_rouge = (tables[name]["rouge_l"].to_numpy() for name in ("rouge", "clean_rouge"))
    weights, unleaked_weights = (plain_weights(draws[:, mask]) for mask in (leaked, ~leaked))

    def on_leaked(values: Array) -> Array:
        return weights @ values[leaked]

    def on_unleaked(values: Array) -> Array:
        return unleaked_weights @ values[~leaked]

    rise = identity - clean
    return {
        "clean_leaked": on_leaked(clean),
        "identity_leaked": on_leaked(identity),
        "clean_unleaked": on_unleaked(clean),
        "identity_unleaked": on_unleaked(identity),
        "inflation": on_leaked(rise) - on_unleaked(rise),
        "rouge_leaked": on_leaked(rouge),
        "rouge_unleaked": on_unleaked(rouge),
        "collapse": on_leaked(rouge) - on_unleaked(rouge),
        "clean_rouge_unleaked": on_unleaked(clean_rouge),
        "excess": on_unleaked(rouge - clean_rouge),
    }


def _signs(row: Mapping[str, Any]) -> dict[str, str]:
    """Inflation and collapse, each absent, weak or clear."""
    clear = {
        "inflation": row["identity_leaked"] >= MIN_LEAKED_SOLVED,
        "collapse": row["rouge_leaked"] >= MIN_LEAKED_ROUGE_L
        and row["rouge_unleaked"] <= MAX_UNLEAKED_ROUGE_L,
    }
    return {
        name: "absent" if not row[f"{name}_ci_low"] > 0 else "clear" if is_clear else "weak"
        for name, is_clear in clear.items()
    }


def _text(row: Mapping[str, Any], signs: Mapping[str, str]) -> str:
    def difference(name: str) -> str:
        values = (row[name], row[f"{name}_ci_low"], row[f"{name}_ci_high"])
        value, low, high = (f"{round(each, 2) + 0.0:+.2f}" for each in values)  # no "-0.00"
        return f"{value} [{low}, {high}]"

    return (
        f"The mean solve probability changes from {row['clean_leaked']:.2f} (clean) to "
        f"{row['identity_leaked']:.2f} (contaminated) on leaked questions, and from "
        f"{row['clean_unleaked']:.2f} to {row['identity_unleaked']:.2f} on unleaked ones: "
        f"inflation {difference('inflation')}, {signs['inflation']}. The mean ROUGE-L with the "
        f"model's own greedy response is {row['rouge_leaked']:.2f} on leaked and "
        f"{row['rouge_unleaked']:.2f} on unleaked questions: collapse {difference('collapse')}, "
        f"{signs['collapse']}. On the unleaked ones it is {row['clean_rouge_unleaked']:.2f} for "
        f"the clean model: excess {difference('excess')}. {row['share_verbatim']:.0%} of the "
        "leaked responses repeat the greedy response word for word."
    )
