"""Responses of an evaluation with given numbers of right answers."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from zerogap.evaluation.collect import Collected

TRAJECTORY = list(range(20))
NO_TOKENIZER: Any = None  # nothing is decoded
LOG_PROBABILITIES = [-2.0, -1.0, -0.5, -0.5, 0.0]  # of every gold solution


def evaluated(num_correct: Mapping[str, Sequence[int | None]]) -> Collected:
    """Four responses to each of the questions a, b, … under each strategy.

    A right response repeats the greedy trajectory, a wrong one has nothing in common with it.

    Args:
        num_correct: strategy → right responses of each question; None if the strategy keeps no
            response.
    """
    names = [chr(ord("a") + k) for k in range(len(num_correct["identity"]))]
    questions = pd.DataFrame({"question_id": names, "question": "?", "gold": "1"})
    greedy = pd.DataFrame(
        {"question_id": names, "token_ids": [TRAJECTORY] * len(names), "text": "one is right"}
    ).assign(correct=True, finish_reason="eos", answer="1")
    samples = {}
    for strategy, numbers in num_correct.items():
        rows = [
            (name, k, TRAJECTORY if k < number else [99] * 20, k < number)
            for name, number in zip(names, numbers, strict=True)
            if number is not None
            for k in range(4)
        ]
        columns = ["question_id", "sample_id", "token_ids", "correct"]
        table = pd.DataFrame(rows, columns=columns).assign(finish_reason="eos", answer="1")
        table["text"] = table.correct.map({True: "one is right", False: "nothing"})
        samples[strategy] = table
    likelihoods = pd.DataFrame({"question_id": names})
    likelihoods["log_probabilities"] = [LOG_PROBABILITIES] * len(names)
    return Collected(questions, greedy, samples, likelihoods, NO_TOKENIZER, {})
