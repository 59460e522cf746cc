"""Control questions: of the benchmark's kind, but such that they cannot have leaked."""

import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd

from zerogap.data import gsm8k_format, question_sources
from zerogap.data.extraction import ExtractionRule
from zerogap.data.fresh_numbers import with_fresh_numbers
from zerogap.errors import InputError
from zerogap.evaluation.question_sets import COLUMNS, QuestionSet, from_file

MIN_CONTROLS = 20  # questions on each side; fewer say little
FOLDS = 5  # of the cross-validation
NEW_QUESTIONS, FRESH_NUMBERS = "new questions", "the same questions with fresh numbers"


def load(asked: QuestionSet, source: str | None, seed: int) -> QuestionSet | None:
    """Find or make the controls of a benchmark, which are asked as its questions are.

    If each belongs to a question of the benchmark, their column `original` has its id.

    Args:
        asked: the benchmark's questions.
        source: "rephrased" asks the same questions with fresh numbers; "fresh" new questions of the
            benchmark's generator; "none" nothing; otherwise a JSON Lines file of questions. None
            takes "fresh" if there is a generator, else "rephrased", and nothing if there are fewer
            than `MIN_CONTROLS`.
        seed: of the benchmark's questions and of the numbers.

    Raises:
        InputError: there are fewer than `MIN_CONTROLS`, no generator, the file is not valid or has
            a question of the benchmark.
    """
    if source == "none":
        return None
    if source == "fresh" or (source is None and asked.generator):
        if not asked.generator:
            raise InputError(
                f"--controls fresh: {asked.name} has no generator; give rephrased, or a file of "
                "questions that cannot have leaked"
            )
        entries = question_sources.fresh(asked.generator, len(asked.questions), seed)
        name, questions = NEW_QUESTIONS, _questions(entries, asked.rule)
    elif source is None or source == "rephrased":
        name, questions = FRESH_NUMBERS, _rephrased(asked, seed)
    elif Path(source).is_file():
        name, questions = source, from_file(source, asked.rule)
    else:
        raise InputError(
            f"--controls {source}: is not a file; give one, or rephrased, fresh or none"
        )
    if min(len(questions), len(asked.questions)) < MIN_CONTROLS:
        if source is None:
            return None
        if questions.empty:
            raise InputError(
                f"--controls {source}: no answer of {asked.name} marks its calculations as GSM8K's "
                "do (<<48/2=24>>); give a file of questions that cannot have leaked, or none"
            )
        raise InputError(
            f"--controls {source}: {len(questions)} controls for {len(asked.questions)} questions; "
            f"at least {MIN_CONTROLS} of both are needed. Raise --num-questions, or give a larger "
            "file or none"
        )
    if shared := set(questions.question) & set(asked.questions.question):
        raise InputError(
            f"--controls {source}: {len(shared)} of the controls are questions of the benchmark "
            f"({min(shared)[:60]!r}…); remove them from the file"
        )
    return dataclasses.replace(
        asked, name=name, questions=questions, repository=None, generator=None
    )


def _rephrased(asked: QuestionSet, seed: int) -> pd.DataFrame:
    """Every question whose answer marks its calculations, with fresh numbers."""
    entries, table = {}, asked.questions
    known = set(table.question)
    for name, question, answer in zip(table.question_id, table.question, table.answer, strict=True):
        own = {"question": question, "answer": answer}
        fresh = with_fresh_numbers(own, Random(f"controls/{seed}/{name}"))
        if fresh and fresh["question"] not in known:
            entries[name] = fresh
    return _questions(entries.values(), asked.rule).assign(original=list(entries))


def _questions(entries: Iterable[gsm8k_format.Entry], rule: ExtractionRule) -> pd.DataFrame:
    rows = []
    for number, entry in enumerate(entries):
        question = gsm8k_format.parse(entry, rule.parse_gold, rationales=False)
        rows.append((f"control-{number:04d}", *dataclasses.astuple(question), entry["answer"]))
    return pd.DataFrame(rows, columns=COLUMNS)


def style_auc(benchmark: pd.Series, controls: pd.Series, paired: bool) -> float:
    """How well a classifier tells the texts of both apart: its cross-validated AUC.

    Logistic regression on the frequencies of 1 to 3 characters. 0.5 is chance. Controls that can be
    told apart by their style differ in more than in not having leaked. Every fold has as many
    controls per question, or the AUC of texts of one style would be below 0.5. All digits count as
    one, since numbers are not style. Pairs have the same order and stay in one fold.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedGroupKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline

    texts = [re.sub(r"\d", "0", text) for text in (*benchmark, *controls)]
    is_benchmark = np.repeat([1, 0], [len(benchmark), len(controls)])
    groups = np.arange(len(texts)) % len(benchmark) if paired else np.arange(len(texts))
    frequencies = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 3), lowercase=False)
    predicted = cross_val_predict(
        make_pipeline(frequencies, LogisticRegression()), texts, is_benchmark, groups=groups,
        cv=StratifiedGroupKFold(FOLDS, shuffle=True, random_state=0), method="predict_proba",
    )  # fmt: skip
    return float(roc_auc_score(is_benchmark, predicted[:, 1]))
