"""`zerogap compare`: the paired difference of two files, what changed, and how to see it."""

import csv
import io
import json

import numpy as np
import pytest

from helpers.response_files import json_lines
from zerogap.cli import main
from zerogap.scoring.comparison import compare
from zerogap.scoring.inputs import load


def loaded(path, n_correct, m, **more):
    """A file of counts out of m, one per question, and further columns."""
    rows = [
        {"id": k, "n_correct": int(c), "n_samples": m} | {name: more[name][k] for name in more}
        for k, c in enumerate(n_correct)
    ]
    return load(json_lines(path, rows))


def files(first, second, m, **more):
    return [loaded(name, c, m, **more) for name, c in (("a", first), ("b", second))]


def pair(first, second, m, **more):
    return compare(*files(first, second, m, **more), 0.95)


def test_difference_and_changed_questions_are_those_of_the_counts():
    result = pair([0, 5, 10, 4], [10, 4, 10, 5], 10)
    assert result.means == pytest.approx((0.475, 0.725))
    assert result.difference[0] == pytest.approx(0.25)
    assert result.difference[1] < 0.25 < result.difference[2]
    assert (result.gained, result.lost) == (2, 1)
    assert result.p_value == 1.0
    assert pair([0] * 8, [1] * 8, 1).p_value == pytest.approx(2 / 2**8)
    assert pair([5] * 4, [5] * 4, 10).noise == pytest.approx(2 * 0.25 * 10 / 9)
    few, many = (loaded(name, [1, 2], m) for name, m in (("few", 4), ("many", 9)))
    assert compare(few, many, 0.95).n_samples == compare(many, few, 0.95).n_samples == 4


def test_most_questions_may_have_no_responses_left():
    """TED has dropped them all."""
    plain, filtered = files([1, 1, 1], [1, 0, 0], 2)
    filtered.counts.loc[1:, "n_samples"] = 0
    result = compare(plain, filtered, 0.95)
    assert result.difference[0] == pytest.approx(-1 / 3)
    assert result.n_questions_needed(0.1, 0.95, result.n_samples) > 0
    assert compare(filtered, plain, 0.95).difference[0] == pytest.approx(1 / 3)


def test_a_question_without_responses_leaves_the_noise_of_the_others():
    rng = np.random.default_rng(0)
    counts = rng.binomial(20, rng.beta(2, 2, 200), (2, 200))
    first, second = files(*counts, 20)
    whole = compare(first, second, 0.95)
    second.counts.loc[0, ["n_correct", "n_samples"]] = 0
    assert compare(first, second, 0.95).noise == pytest.approx(whole.noise, rel=0.02)


def test_what_the_files_cannot_show_is_said(capsys):
    same = files([1, 0] * 5, [1, 0] * 5, 1)
    assert main(["compare", *(str(file.path) for file in same)]) == 0
    printed = capsys.readouterr()
    assert "power: not known, since no question and no response differs." in printed.out
    assert "10 questions are too few for an interval" in printed.err


def test_files_may_disagree_on_which_questions_are_leaked():
    first, second = (
        loaded(name, [1, 0, 0], 1, leaked=[is_leaked] * 3)
        for name, is_leaked in (("a", True), ("b", False))
    )
    assert compare(first, second, 0.95).difference[0] == 0


def test_clusters_are_drawn_and_counted_as_what_is_needed():
    """Ten copies of each question in a cluster say as much as one."""
    rng = np.random.default_rng(0)
    first, second = 100 * rng.integers(11, size=(2, 40))
    alone = pair(first, second, 1000)
    clusters = [f"c{k}" for k in range(40)] * 10
    copied = pair(np.tile(first, 10), np.tile(second, 10), 1000, cluster=clusters)
    assert copied.difference == pytest.approx(alone.difference)
    needed = [each.n_questions_needed(0.05, 0.95, 1000) for each in (alone, copied)]
    assert needed[1] == pytest.approx(10 * needed[0], rel=0.05)
    assert (alone.units, copied.units) == ("questions", "clusters of questions")
    assert "McNemar's test takes the questions of a cluster" in copied.notes[-1]


def test_what_is_needed_is_what_shows_a_difference():
    """Power by simulation: m responses to so many questions find the difference in 80 %."""
    rng = np.random.default_rng(0)
    m, true_difference, n = 4, 0.1, 4000

    def draw(n):
        p = rng.uniform(0.1, 0.9, n)
        q = np.clip(p + true_difference + rng.normal(0, 0.05, n), 0, 1)
        return rng.binomial(m, p), rng.binomial(m, q)

    result = pair(*draw(n), m)
    needed = result.n_questions_needed(true_difference, 0.95, m)
    found = 0
    for _ in range(1000):
        first, second = draw(needed)
        differences = (second - first) / m
        error = differences.std(ddof=1) / np.sqrt(needed)
        found += abs(differences.mean()) > 1.96 * error
    assert 0.76 < found / 1000 < 0.84
    assert result.n_questions_needed(true_difference, 0.95, 1) > 2 * needed


def test_the_command_prints_difference_change_and_needs(capsys):
    paths = [str(file.path) for file in files([0, 1] * 20, [2, 1] * 20, 2)]
    assert main(["compare", *paths]) == 0
    printed = capsys.readouterr().out
    assert "0.500" in printed
    assert "50.0% of the questions changed: 20 are solved by B only, 0 by A only" in printed
    assert "To see a difference of 0.05 with 80% power: " in printed
    assert main(["compare", *paths, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["gained"] == 20
    assert main(["compare", *paths, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["key"] for row in rows] == ["A", "B", "B-A"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a", "--difference", "0"], "--difference must be between 0 and 1"),
        (["a", "--confidence-level", "1"], "--confidence-level must be between 0 and 1"),
        (["a", "--filter", "x"], "--filter: no file is a log with several filters"),
        (["a", "--extraction", "flexible-extract"], "--extraction: no file has responses"),
        (["b"], "b: 1 question (3) not in a; remove them, or add responses to them there"),
        (["none"], "none: does not exist"),
    ],
)
def test_invalid_options_and_other_questions_are_clear_errors(words, message, capsys):
    for name, n in (("a", 3), ("b", 4)):
        loaded(name, [1] * n, 2)
    assert main(["compare", "a", *words]) == 2
    assert capsys.readouterr().err.startswith(f"error: {message}")
