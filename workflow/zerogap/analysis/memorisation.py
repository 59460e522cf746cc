"""Did contamination work? Whether a contaminated model memorised its leaked questions.

Two signs, both relative to the unleaked questions of the same model, which no training contained:

- *inflation*: the solve probability is above the clean model's on leaked questions, by more than on
  unleaked ones;
- *collapse*: responses follow the model's own greedy trajectory (ROUGE-L) more on leaked questions
  than on unleaked ones.

A strategy has something to undo only if there is inflation, and RailCap and TED have something to
act on only if there is collapse. A sign is *clear* if the interval of the difference is above zero
and the value on leaked questions reaches a bound, *weak* if only the interval is above zero.
"""

from typing import Any

import numpy as np
import pandas as pd

from zerogap.errors import InputError
from zerogap.metrics import interval, plain_weights, question_weights, solve_probability
from zerogap.metrics.gaps import Array, Values


def memorisation(
    model: str,
    benchmark: str,
    clean: pd.DataFrame,
    identity: pd.DataFrame,
    overlap: pd.DataFrame,
    *,
    min_leaked_solve_probability: float = 0.9,
    min_rouge_l: float = 0.8,
    n_resamples: int = 2000,
    confidence_level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """One row for one contaminated model: the two signs with intervals, and the verdict.

    Args:
        model: Name of the model.
        benchmark: Name of the benchmark.
        clean: `solve` table of the clean model.
        identity: `solve` table of the contaminated model.
        overlap: `overlap` table of the contaminated model's samples.
        min_leaked_solve_probability: Bound of clear inflation, on the mean solve probability of
            leaked questions.
        min_rouge_l: Bound of clear collapse, on the mean ROUGE-L of leaked questions.
        n_resamples: Number of bootstrap resamples.
        confidence_level: Of the intervals.
        seed: Of the bootstrap.

    Returns:
        model, benchmark, verdict (memorised, weakly memorised, not memorised), text, and, each with
        ci_low and ci_high columns: clean_leaked, identity_leaked, clean_unleaked,
        identity_unleaked (mean solve probabilities), inflation (see above), rouge_leaked,
        rouge_unleaked, collapse; and share_verbatim, the fraction of leaked responses with
        ROUGE-L 1.

    Raises:
        InputError: There are no leaked or no unleaked questions, or the tables have different
            questions.
    """
    place = f"{model}/{benchmark}"
    clean, identity, rouge = _aligned(clean, identity, overlap, place)
    leaked = clean["leaked"].to_numpy(dtype=bool)
    if leaked.all() or not leaked.any():
        raise InputError(f"{place}: needs both leaked and unleaked questions")

    draws = question_weights(leaked, n_resamples, np.random.default_rng(seed))
    row: dict[str, Any] = {"model": model, "benchmark": benchmark}
    for name, values in _estimates(clean, identity, rouge, leaked, draws).items():
        low, high = interval(values[1:], confidence_level)
        row |= {name: float(values[0]), f"{name}_ci_low": low, f"{name}_ci_high": high}
    row["share_verbatim"] = float((overlap.loc[overlap["leaked"], "rouge_l"] == 1).mean())
    signs = {
        "inflation": _sign(
            row["inflation_ci_low"], row["identity_leaked"], min_leaked_solve_probability
        ),
        "collapse": _sign(row["collapse_ci_low"], row["rouge_leaked"], min_rouge_l),
    }
    row["verdict"] = _verdict(set(signs.values()))
    row["text"] = _text(row, signs)
    return pd.DataFrame([row])


def _aligned(
    clean: pd.DataFrame, identity: pd.DataFrame, overlap: pd.DataFrame, place: str
) -> tuple[pd.DataFrame, pd.DataFrame, Values]:
    """The two solve tables by question, and the mean ROUGE-L of each question."""
    clean, identity = clean.set_index("question_id"), identity.set_index("question_id")
    rouge = overlap.groupby("question_id")["rouge_l"].mean()
    for name, index in {"identity": identity.index, "overlap": rouge.index}.items():
        differing = clean.index.symmetric_difference(index)
        if differing.size:
            raise InputError(f"{place} {name}: question {differing[0]!r} must be in both tables")
    return clean, identity.loc[clean.index], rouge.loc[clean.index].to_numpy()


def _estimates(
    clean: pd.DataFrame, identity: pd.DataFrame, rouge: Values, leaked: Array, draws: Array
) -> dict[str, Values]:
    """Every quantity: its point estimate, then its values in the resamples."""
    # The point estimate is the resample that draws every question once.
    draws = np.vstack([np.ones((1, len(leaked)), dtype=np.int64), draws])

    def mean(values: Array, mask: Array) -> Values:
        means: Values = plain_weights(draws[:, mask]) @ values[mask]
        return means

    before = solve_probability(clean["n_correct"], clean["n_samples"])
    after = solve_probability(identity["n_correct"], identity["n_samples"])
    return {
        "clean_leaked": mean(before, leaked),
        "identity_leaked": mean(after, leaked),
        "clean_unleaked": mean(before, ~leaked),
        "identity_unleaked": mean(after, ~leaked),
        "inflation": mean(after - before, leaked) - mean(after - before, ~leaked),
        "rouge_leaked": mean(rouge, leaked),
        "rouge_unleaked": mean(rouge, ~leaked),
        "collapse": mean(rouge, leaked) - mean(rouge, ~leaked),
    }


def _sign(difference_low: float, value: float, bound: float) -> str:
    if not difference_low > 0:
        return "absent"
    return "clear" if value >= bound else "weak"


def _verdict(signs: set[str]) -> str:
    if signs == {"clear"}:
        return "memorised"
    return "not memorised" if signs == {"absent"} else "weakly memorised"


def _text(row: dict[str, Any], signs: dict[str, str]) -> str:
    def difference(name: str) -> str:
        return f"{row[name]:+.2f} [{row[f'{name}_ci_low']:+.2f}, {row[f'{name}_ci_high']:+.2f}]"

    return (
        f"The mean solve probability changes from {row['clean_leaked']:.2f} (clean) to "
        f"{row['identity_leaked']:.2f} (contaminated) on leaked questions, and from "
        f"{row['clean_unleaked']:.2f} to {row['identity_unleaked']:.2f} on unleaked ones: "
        f"inflation {difference('inflation')}, {signs['inflation']}. The mean ROUGE-L with the "
        f"model's own greedy response is {row['rouge_leaked']:.2f} on leaked and "
        f"{row['rouge_unleaked']:.2f} on unleaked questions: collapse {difference('collapse')}, "
        f"{signs['collapse']}; {row['share_verbatim']:.0%} of the leaked responses repeat it word "
        "for word."
    )
