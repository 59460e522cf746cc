"""Did contamination work? Whether a contaminated model memorised its leaked questions.

Two signs, both against the unleaked questions of the same model, which no training saw:

- *inflation*: the solve probability rose above the clean model's on leaked questions, by more
  than on unleaked ones;
- *collapse*: responses fall back onto the model's own greedy trajectory (ROUGE-L) more on leaked
  questions than on unleaked ones.

A strategy has something to undo only where the first sign is there, and RailCap and TED have
something to act on only where the second is. A sign is *clear* where the difference's interval lies
above zero and the reading on leaked questions reaches a bound, *weak* where only the interval does.
"""

from typing import Any

import numpy as np
import pandas as pd

from zerogap.errors import InputError
from zerogap.metrics import bootstrap, gaps


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
    """One row on one contaminated model: the two signs with intervals, and the verdict.

    Args:
        clean, identity: `solve` tables of the clean and of the contaminated model.
        overlap: `overlap` table of the contaminated model's samples.
        min_leaked_solve_probability, min_rouge_l: bounds of a clear sign, on the mean solve probability and
            on the mean ROUGE-L of leaked questions.

    Returns:
        model, benchmark, verdict (memorised, weakly memorised, not memorised), text, and, each with
        ci_low and ci_high columns: clean_leaked, identity_leaked, clean_unleaked,
        identity_unleaked (mean solve probabilities), inflation (see above), rouge_leaked,
        rouge_unleaked, collapse; and share_verbatim, the leaked responses with ROUGE-L 1.

    Raises:
        InputError: no leaked or no unleaked questions, or tables of different questions.
    """
    clean, identity = clean.set_index("question_id"), identity.set_index("question_id")
    rouge = overlap.groupby("question_id")["rouge_l"].mean()
    for name, index in {"identity": identity.index, "overlap": rouge.index}.items():
        if (odd := clean.index.symmetric_difference(index)).size:
            raise InputError(
                f"{model}/{benchmark} {name}: question {odd[0]!r} is not in both tables"
            )
    identity, rouge = identity.loc[clean.index], rouge.loc[clean.index].to_numpy()
    leaked = clean["leaked"].to_numpy(dtype=bool)
    if leaked.all() or not leaked.any():
        raise InputError(f"{model}/{benchmark}: leaked and unleaked questions are both needed")

    drawn = bootstrap.question_weights(leaked, n_resamples, np.random.default_rng(seed))
    drawn = np.vstack([np.ones((1, len(leaked)), dtype=np.int64), drawn])  # first the reading

    def mean(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
        return bootstrap.plain_weights(drawn[:, mask]) @ values[mask]

    before = gaps.solve_probability(clean["n_correct"], clean["n_samples"])
    after = gaps.solve_probability(identity["n_correct"], identity["n_samples"])
    found = {
        "clean_leaked": mean(before, leaked),
        "identity_leaked": mean(after, leaked),
        "clean_unleaked": mean(before, ~leaked),
        "identity_unleaked": mean(after, ~leaked),
        "inflation": mean(after - before, leaked) - mean(after - before, ~leaked),
        "rouge_leaked": mean(rouge, leaked),
        "rouge_unleaked": mean(rouge, ~leaked),
        "collapse": mean(rouge, leaked) - mean(rouge, ~leaked),
    }
    row: dict[str, Any] = {"model": model, "benchmark": benchmark}
    for name, values in found.items():
        low, high = bootstrap.interval(values[1:], confidence_level)
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


def _sign(difference_low: float, reading: float, bound: float) -> str:
    if not difference_low > 0:
        return "absent"
    return "clear" if reading >= bound else "weak"


def _verdict(signs: set[str]) -> str:
    if signs == {"clear"}:
        return "memorised"
    return "not memorised" if signs == {"absent"} else "weakly memorised"


def _text(row: dict, signs: dict[str, str]) -> str:
    def reading(name: str) -> str:
        return f"{row[name]:+.2f} [{row[f'{name}_ci_low']:+.2f}, {row[f'{name}_ci_high']:+.2f}]"

    return (
        f"On leaked questions the mean solve probability goes from {row['clean_leaked']:.2f} "
        f"(clean) to {row['identity_leaked']:.2f} (contaminated), on unleaked ones from "
        f"{row['clean_unleaked']:.2f} to {row['identity_unleaked']:.2f}: inflation "
        f"{reading('inflation')}, {signs['inflation']}. Mean ROUGE-L with the model's own "
        f"greedy response is {row['rouge_leaked']:.2f} on leaked and {row['rouge_unleaked']:.2f} "
        f"on unleaked questions: collapse {reading('collapse')}, {signs['collapse']}; "
        f"{row['share_verbatim']:.0%} of the leaked responses repeat it word for word."
    )
