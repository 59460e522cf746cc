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


def loaded(path, n_correct, m):
    rows = [{"id": k, "n_correct": c, "n_samples": m} for k, c in enumerate(n_correct)]
    return load(json_lines(path, rows))


def pair(tmp_path, first, second, m):
    files = (loaded(tmp_path / name, c, m) for name, c in (("a", first), ("b", second)))
    return compare(*files, 0.95)


def test_difference_and_changed_questions_are_those_of_the_counts(tmp_path):
    result = pair(tmp_path, [0, 5, 10, 4], [10, 4, 10, 5], 10)
    assert result.means == pytest.approx((0.475, 0.725))
    assert result.difference[0] == pytest.approx(0.25)
    assert result.difference[1] < 0.25 < result.difference[2]
    assert (result.gained, result.lost) == (2, 1)
    assert result.p_value == 1.0
    assert pair(tmp_path, [0] * 8, [1] * 8, 1).p_value == pytest.approx(2 / 2**8)
    assert pair(tmp_path, [5] * 4, [5] * 4, 10).noise == pytest.approx(2 * 0.25 * 10 / 9)
    for m in ((4, 9), (9, 4)):
        files = [loaded(tmp_path / name, [1, 2], each) for name, each in zip("ab", m, strict=True)]
        assert compare(*files, 0.95).n_samples == 4


def test_most_questions_may_have_no_responses_left(tmp_path):
    """TED has dropped them all."""
    rows = [{"id": k, "n_correct": 1 - (k > 0), "n_samples": 2 * (k == 0)} for k in range(3)]
    filtered = load(json_lines(tmp_path / "b", rows))
    plain = loaded(tmp_path / "a", [1, 1, 1], 2)
    result = compare(plain, filtered, 0.95)
    assert result.difference[0] == pytest.approx(-1 / 3)
    assert result.n_questions_needed(0.1, 0.8, 0.95, result.n_samples) > 0
    assert compare(filtered, plain, 0.95).difference[0] == pytest.approx(1 / 3)


def test_a_question_without_responses_leaves_the_noise_of_the_others(tmp_path):
    rng = np.random.default_rng(0)
    counts = rng.binomial(20, rng.beta(2, 2, 200), (2, 200))
    files = [
        loaded(tmp_path / name, each.tolist(), 20) for name, each in zip("ab", counts, strict=True)
    ]
    whole = compare(*files, 0.95)
    files[1].counts.loc[0, ["n_correct", "n_samples"]] = 0
    assert compare(*files, 0.95).noise == pytest.approx(whole.noise, rel=0.02)


def test_what_the_files_cannot_show_is_said(tmp_path, capsys):
    same = [str(loaded(tmp_path / name, [1, 0] * 5, 1).path) for name in "ab"]
    assert main(["compare", *same]) == 0
    printed = capsys.readouterr()
    assert "power: not known, since no question and no response differs." in printed.out
    assert "10 questions are too few for an interval" in printed.err


def test_files_may_disagree_on_which_questions_are_leaked(tmp_path):
    files = []
    for name, leaked in (("a", True), ("b", False)):
        rows = [{"id": k, "correct": k == 0, "leaked": leaked} for k in range(3)]
        files.append(load(json_lines(tmp_path / name, rows)))
    assert compare(*files, 0.95).difference[0] == 0


def test_clusters_are_drawn_and_counted_as_what_is_needed(tmp_path):
    """Ten copies of each question in a cluster say as much as one."""
    rng = np.random.default_rng(0)
    first, second = 100 * rng.integers(11, size=(2, 40))
    alone = pair(tmp_path, first.tolist(), second.tolist(), 1000)
    files = []
    for name, n_correct in (("a", first), ("b", second)):
        rows = [
            {"id": f"{k}-{copy}", "n_correct": int(c), "n_samples": 1000, "cluster": f"c{k}"}
            for k, c in enumerate(n_correct)
            for copy in range(10)
        ]
        files.append(load(json_lines(tmp_path / name, rows)))
    copied = compare(*files, 0.95)
    assert copied.difference == pytest.approx(alone.difference)
    needed = [each.n_questions_needed(0.05, 0.8, 0.95, 1000) for each in (alone, copied)]
    assert needed[1] == pytest.approx(10 * needed[0], rel=0.05)
    assert (alone.units, copied.units) == ("questions", "clusters of questions")
    assert "McNemar's test takes the questions of a cluster" in copied.notes[-1]


def test_what_is_needed_is_what_shows_a_difference(tmp_path):
    """Power by simulation: m responses to so many questions find the difference in 80 %."""
    rng = np.random.default_rng(0)
    m, true_difference, n = 4, 0.1, 4000

    def draw(n):
        p = rng.uniform(0.1, 0.9, n)
        q = np.clip(p + true_difference + rng.normal(0, 0.05, n), 0, 1)
        return rng.binomial(m, p), rng.binomial(m, q)

    result = pair(tmp_path, *(counts.tolist() for counts in draw(n)), m)
    needed = result.n_questions_needed(true_difference, 0.8, 0.95, m)
    found = 0
    for _ in range(1000):
        first, second = draw(needed)
        differences = (second - first) / m
        error = differences.std(ddof=1) / np.sqrt(needed)
        found += abs(differences.mean()) > 1.96 * error
    assert 0.76 < found / 1000 < 0.84
    assert result.n_questions_needed(true_difference, 0.8, 0.95, 1) > 2 * needed


def test_the_command_prints_difference_change_and_needs(tmp_path, capsys):
    paths = [str(loaded(tmp_path / name, counts, 2).path) for name, counts in
             (("a", [0, 1] * 20), ("b", [2, 1] * 20))]  # fmt: skip
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
        (["a", "--extraction", "flexible-extract"], "--extraction: every file already marks"),
        (["b"], "b: 1 question (3) not in a; remove them, or add responses to them there"),
        (["none"], "none: does not exist"),
    ],
)
def test_invalid_options_and_other_questions_are_clear_errors(
    words, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for name, n in (("a", 3), ("b", 4)):
        loaded(tmp_path / name, [1] * n, 2)
    assert main(["compare", "a", *words]) == 2
    assert capsys.readouterr().err.startswith(f"error: {message}")


def test_other_documents_of_the_same_questions_are_noted(tmp_path):
    files = [loaded(tmp_path / name, [1, 2], 4) for name in "ab"]
    for file, hashes in zip(files, (["x", "y"], ["x", "z"]), strict=True):
        file.counts["doc_hash"] = hashes
    (note,) = (n for n in compare(*files, 0.95).notes if "doc_hash" in n)
    assert "1 question (1) with a different document" in note
