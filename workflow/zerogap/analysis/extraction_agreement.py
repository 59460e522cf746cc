"""Does it matter how answers are extracted? The same responses under every rule.

The rules are those of :mod:`zerogap.data.extraction`; the run's own is the one its `correct`
column was made by.
"""

from collections.abc import Iterable, Mapping

import pandas as pd

from zerogap.data.extraction import RULES, Rule


def agreement(
    samples: Iterable[pd.DataFrame], gold: Mapping[str, str], own: Rule
) -> dict[str, float]:
    """Shares of all responses, over the tables together (e.g. one strategy in every setting).

    Args:
        samples: tables with `question_id`, `text` and `correct` (by the run's own rule).
        gold: question id → gold answer.

    Returns:
        `responses`, how many there are; and of every named rule R except the run's own, as far as
        it can be asked about these gold answers,
        `answered R`, `correct R` and `agree R` (judged as the run's rule judges); `answered own`
        and `correct own` of that one. NaN where there are no responses.
    """
    counts = dict.fromkeys(["responses", "answered own", "correct own"], 0)
    others = [
        rule
        for rule in RULES.values()
        if rule.name != own.name and all(map(rule.takes, gold.values()))
    ]
    counts |= {
        f"{key} {rule.name}": 0 for rule in others for key in ("answered", "correct", "agree")
    }
    for table in samples:
        # Memorised responses are the same text again and again.
        groups = table.groupby(["question_id", "text"], sort=False).correct.agg(["size", "first"])
        for (question_id, text), size, correct in groups.itertuples():
            counts["responses"] += size
            counts["answered own"] += size * (own.find(text)[0] is not None)
            counts["correct own"] += size * bool(correct)
            for rule in others:
                answer, _, right = rule.judge(text, gold[question_id])
                counts[f"answered {rule.name}"] += size * (answer is not None)
                counts[f"correct {rule.name}"] += size * right
                counts[f"agree {rule.name}"] += size * (right == correct)
    total = counts.pop("responses")
    return {"responses": total} | {
        key: count / total if total else float("nan") for key, count in counts.items()
    }
