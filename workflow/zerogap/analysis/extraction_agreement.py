"""Does the answer extraction rule matter? The same responses scored by every named rule.

The rules are those of `zerogap.data.extraction`; the run's own rule is the one that produced the
`correct` column.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from zerogap.data.extraction import RULES, ExtractionRule

COLUMNS = ("text", "answer", "correct")  # of a table of responses, next to its key


def agreement(
    samples: Iterable[pd.DataFrame], gold: Mapping[str, str], run_rule: ExtractionRule
) -> dict[str, float]:
    """Fractions of all responses, over the tables together (such as one strategy in all settings).

    Args:
        samples: Tables with `question_id`, `text`, and `answer` and `correct` by the own rule.
        gold: Question id → gold answer.
        run_rule: The run's own rule.

    Returns:
        `responses`, their number; `answered own` and `correct own` for the run's rule; and for each
        other named rule R that accepts these gold answers `answered R`, `correct R` and `agree R`
        (scored as by the run's rule). NaN if there are no responses.
    """
    others = [
        rule
        for rule in RULES.values()
        if rule.name != run_rule.name and all(map(rule.accepts_gold, gold.values()))
    ]
    counts = dict.fromkeys(["responses", "answered own", "correct own"], 0) | {
        f"{key} {rule.name}": 0 for rule in others for key in ("answered", "correct", "agree")
    }
    for table in samples:
        counts["responses"] += len(table)
        counts["answered own"] += int(table["answer"].notna().sum())
        counts["correct own"] += int(table["correct"].sum())
        # Memorised responses repeat the same text many times: grade each distinct text once.
        groups = table.groupby(["question_id", "text"], sort=False).correct.agg(["size", "first"])
        sizes, correct = groups["size"].to_numpy(), groups["first"].to_numpy()
        golds = groups.index.get_level_values("question_id").map(gold)
        texts = groups.index.get_level_values("text")
        for rule in others:
            grades = list(map(rule.grade, texts, golds))
            answered = [grade.answer is not None for grade in grades]
            is_correct = np.array([grade.correct for grade in grades], dtype=bool)
            counts[f"answered {rule.name}"] += int(sizes @ answered)
            counts[f"correct {rule.name}"] += int(sizes @ is_correct)
            counts[f"agree {rule.name}"] += int(sizes @ (is_correct == correct))
    n_responses = counts.pop("responses")
    return {"responses": n_responses} | {
        key: count / n_responses if n_responses else float("nan") for key, count in counts.items()
    }
