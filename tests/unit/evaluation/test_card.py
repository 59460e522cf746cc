"""The report card: what is compared, when there is a verdict, and what it says."""

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest

from helpers.evaluations import evaluated
from zerogap.evaluation.card import MAX_STYLE_AUC, SIGNALS, compare
from zerogap.evaluation.controls import FRESH_NUMBERS, NEW_QUESTIONS
from zerogap.evaluation.question_sets import load
from zerogap.evaluation.report import _not_a_formula, signal_table, strategy_table
from zerogap.evaluation.summary import summarise
from zerogap.evaluation.verdict import verdict
from zerogap.reporting.render import to_markdown

SIZE = 26  # questions, which have the letters as ids
CLEAN, LEAKED = [0, 1, 2, 1] * 6 + [0, 3], [4] * 20 + [1] * 6


@pytest.fixture(scope="module")
def asked():
    return load("toy_gsm8k", SIZE, 0, None)


def summary(correct, texts):
    collected = evaluated({"identity": correct, "railcap": CLEAN})
    collected.likelihoods["log_probabilities"] = [[count - 4.0] for count in correct]
    collected.questions["question"] = list(texts)
    return summarise(collected)


def made(asked, benchmark, controls=CLEAN, *, paired=True, texts=None, references=()):
    """The card of a model with these numbers of right responses of four."""
    questions = asked.questions.question
    other = questions if texts is None else texts
    controls_of = {"original": evaluated({"identity": CLEAN}).questions.question_id}
    named = pd.DataFrame(controls_of if paired else {})
    sides = [
        (summary(first, questions), summary(second, other))
        for first, second in ((benchmark, controls), *references)
    ]
    name = FRESH_NUMBERS if paired else NEW_QUESTIONS
    return compare(sides, dataclasses.replace(asked, name=name, questions=named))


@pytest.mark.parametrize("paired", [True, False])
def test_a_score_above_that_of_the_controls_is_inflated(asked, paired):
    found = made(asked, LEAKED, paired=paired)
    value, low, _ = found.inflation
    assert value == pytest.approx((np.mean(LEAKED) - np.mean(CLEAN)) / 4)
    assert low > 0.4
    assert found.p < 0.001
    said = verdict(found, None)
    assert said[0].startswith(f"The score is inflated by {value:.2f} [")
    false_alarms = "0 of 6 clean tests of SmolLM2" if paired else "1 of 36 clean tests of toy"
    assert false_alarms in said[0]
    of_a_file = dataclasses.replace(found, name="mine.jsonl")
    assert "how often this is wrong with such controls was not" in verdict(of_a_file, None)[0]
    assert ("an inflation is underestimated" in said[-1]) == paired
    assert "solve probability is 0.83 on 26 questions of the benchmark and 0.26 on 26" in said[0]
    assert "By one signal (Min-20 % of the gold solution), at least" in said[1]
    assert f"{found.questions.flagged.sum()} of 26 are flagged" in said[1]
    assert list(found.questions.flagged) == [True] * 20 + [False] * 6


def test_the_sentence_on_a_score_that_is_not_inflated_says_how_much_could_be_missed(asked):
    found = made(asked, CLEAN[::-1])
    assert found.p > 0.5
    assert not found.questions.flagged.any()
    said, _ = verdict(found, None)
    assert said.startswith("No inflation was found.")
    assert f"up to {found.inflation[2]:.2f} is not excluded" in said
    said, _ = verdict(made(asked, CLEAN), None)
    assert "Not one question tells them apart" in said
    said, _ = verdict(made(asked, [0] * SIZE), None)
    assert "The controls are easier than the benchmark" in said


def test_weak_evidence_is_called_weak_and_no_share_of_zero_is_memorised(asked):
    found = made(asked, LEAKED)
    score = found.signals["identity"]._replace(p=0.04, difference=(0.1, -0.01, 0.2))
    found = dataclasses.replace(found, share=(0.0, 0.0, 0.1), signals={"identity": score})
    said, memorised, _ = verdict(found, None)
    assert "p = 0.04 (one-sided)" in said
    assert "The evidence is weak: the interval, two-sided, includes 0." in said
    assert "no more questions than controls look memorised" in memorised


def test_controls_of_another_style_give_no_verdict(asked):
    texts = [f"SOLVE: {text.upper()}" for text in asked.questions.question]
    found = made(asked, LEAKED, texts=texts)
    assert found.style_auc > MAX_STYLE_AUC
    assert not found.is_comparable
    assert not found.questions.flagged.any()
    (said,) = verdict(found, None)
    assert said.startswith("No verdict: by their wording alone")


def test_a_model_whose_responses_mostly_have_no_answer_gets_no_verdict(asked):
    found = made(asked, LEAKED)
    assert found.unanswered == 0
    (said,) = verdict(dataclasses.replace(found, unanswered=0.51), None)
    assert said.startswith("No verdict: 51.0% of the responses to the benchmark have no answer.")
    assert "raise --max-new-tokens" in said
    assert verdict(dataclasses.replace(found, unanswered=0.5), None) == verdict(found, None)


def test_a_reference_model_that_shows_the_same_difference_takes_it_away(asked):
    easier = [min(4, count + 2) for count in CLEAN]
    assert made(asked, easier).p < 0.01
    alike = made(asked, easier, references=[(easier, CLEAN), (easier, CLEAN)])
    assert alike.inflation == (0, 0, 0)
    assert alike.p == 1
    partly = made(asked, LEAKED, references=[(easier, CLEAN)])
    assert 0 < partly.inflation[0] < made(asked, LEAKED).inflation[0]
    said, _, assumed = verdict(partly, None)
    assert "solve probability is 0.83 on 26 questions of the benchmark and 0.26 on 26" in said
    assert f"the reference models, {np.mean(easier) / 4 - np.mean(CLEAN) / 4:.2f}, is sub" in said
    assert "as unequal as to the reference models" in assumed
    assert "minus the references' mean" in to_markdown(signal_table(partly, "model"))


def test_every_signal_is_in_the_table_and_those_without_values_are_left_out(asked):
    found = made(asked, LEAKED)
    text = to_markdown(signal_table(found, "model on questions"))
    for name, label in SIGNALS.items():
        assert (label in text) == (name != "drop_lne_blocking")  # which was not sampled
    assert f"AUC of {found.style_auc:.2f}" in text


def test_without_controls_there_is_no_verdict():
    (said,) = verdict(None, None)
    assert said.startswith("No verdict")
    assert "--controls" in said


@pytest.mark.parametrize(
    ("clean", "distances", "words"),
    [
        (0.5, {"ted": 0.28}, "TED is closest to the clean model with 0.28 [0.18, 0.38]; the"),
        (0.5, {"ted": 0.05}, "TED is closest to the clean model with 0.05 [−0.05, 0.15]."),
        (
            0.5,
            {"ted": 0.28, "railcap": 0.3},
            "[0.18, 0.38]; the difference from Identity, RailCap may",
        ),
        (0.5, {}, "No strategy is closer to the clean model; the next is RailCap with 0.42"),
        (0.5, {"clean_batch2": 0.07}, "Two batches of the clean model are 0.07 apart"),
        (0.0, {}, "THE CLEAN MODEL SOLVES NONE of these questions"),
    ],
)
def test_with_a_clean_model_distances_and_the_closest_strategy_are_named(clean, distances, words):
    rows = [("clean", "solve_mean", clean), ("identity", "solve_mean", 0.75)]
    distances = {"identity": 0.31, "railcap": 0.42, **distances}
    rows += [(name, "sa_ppg", value) for name, value in distances.items()]
    for name, other in itertools.permutations(distances, 2):
        difference = distances[name] - distances[other]
        rows.append((name, f"sa_ppg_maxt_vs_{other}", difference))
    metrics = pd.DataFrame(rows, columns=["strategy", "metric", "value"])
    ends = {"ci_low": metrics.value - 0.1, "ci_high": metrics.value + 0.1}
    *_, paragraph, assumed = verdict(None, metrics.assign(subset="all", **ends))
    assert f"it solves {clean:.2f} of the questions on average, the model 0.75" in paragraph
    assert words in paragraph
    assert ("closest to" in paragraph or "is closer to" in paragraph) == bool(clean)
    assert "in nothing else" in assumed.replace("\n", " ")


@pytest.mark.parametrize(
    ("text", "written"),
    [("=1+1", "'=1+1"), (" @a", "' @a"), ("-2+3", "'-2+3"), ("-5", "-5"), ("a=b", "a=b"), (1, 1)],
)
def test_no_cell_of_the_csv_file_is_a_formula(text, written):
    assert _not_a_formula(text) == written


def test_the_table_by_strategy_counts_the_greedy_responses_and_those_without_text_or_answer():
    collected = evaluated({"identity": [2, 4, 4], "ted": [None, None, None]})
    collected.samples["identity"].loc[:2, "answer"] = None
    collected.samples["identity"].loc[2, "text"] = " "
    text = to_markdown(strategy_table(summarise(collected), collected, "model on questions"))
    assert "on 3 questions, 4 responses each" in text
    assert "The greedy responses solve 3 of the 3 questions" in text
    assert "no answer: greedy 0 and 0 of 3, Identity 1 and 3 of 12, TED 0 and 0 of 0." in text


def test_the_figure_has_the_pairs_that_the_table_compares(asked):
    first, second = (summary(CLEAN, asked.questions.question) for _ in range(2))
    name = next(name for name in SIGNALS if "likelihood" in name)
    known = second.questions.copy()
    known.loc[known.index[:6], name] = np.nan  # a pair's text does not fit into the context
    named = pd.DataFrame({"original": first.questions.question_id})
    controls = dataclasses.replace(asked, name="new ones", questions=named)
    found = compare([(first, dataclasses.replace(second, questions=known))], controls)
    means = [side.mean() for side in found.values[name]]
    assert means == pytest.approx(found.signals[name][:2])
