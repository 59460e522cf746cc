"""The example of strategies from outside the package."""

import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import zerogap
from helpers.decoding import rows_of
from helpers.paths import ROOT
from zerogap.engine.decoder import Rows
from zerogap.errors import InputError
from zerogap.strategies.base import Context, build

VOCABULARY, END = 5, 4
FIXTURE = [HealthCheck.function_scoped_fixture]
tokens = st.lists(st.integers(0, VOCABULARY - 1), max_size=12)
level = st.integers(-3, 6).map(float)


@pytest.fixture(autouse=True)
def checkout(monkeypatch):
    """Where the commands are started, and where the class names of the overlay lead from."""
    monkeypatch.chdir(ROOT)


def rule(name, **parameters):
    path = f"examples.outside_strategy.rail_rules:{name}"
    return build({"class": path, "parameters": parameters})


def edited(strategy, entropies, trajectories, generated, logits):
    """Of each row, the rail token, the logits and the logits that the strategy makes of them."""
    edit_logits = strategy.prepare(Context(list(trajectories), entropies)).edit_logits
    edits = edit_logits(torch.tensor(logits), rows_of(generated)).tolist()
    rail = [rail_token(*row, strategy.n) for row in zip(trajectories, generated, strict=True)]
    return zip(rail, map(list, logits), edits, strict=True)


def rail_token(trajectory, generated, n):
    """Line 8 of Algorithm 1 for one row, literally: the last successor of the last n tokens."""
    found = None
    for k in range(len(trajectory) - n):
        if len(generated) >= n and trajectory[k : k + n] == generated[-n:]:
            found = trajectory[k + n]
    return found


def capped(logits, token):
    """Line 9 of Algorithm 1."""
    logits = list(logits)
    logits[token] = min(logits[token], sorted(logits)[-2])
    return logits


rows = st.lists(
    st.tuples(
        tokens.filter(bool),
        tokens,
        st.lists(level, min_size=VOCABULARY, max_size=VOCABULARY),
        st.floats(0, 2),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=300, deadline=None, suppress_health_check=FIXTURE)
@given(rows=rows, n=st.integers(1, 3), min_share=st.sampled_from([0.0, 0.3, 0.5, 0.8, 1.0]))
def test_clear_runner_up_caps_where_the_runner_up_has_its_share_of_the_others(rows, n, min_share):
    *batch, _ = zip(*rows, strict=True)
    strategy = rule("ClearRunnerUp", n=n, min_share=min_share)
    for token, before, after in edited(strategy, [], *batch):
        expected = before
        if token is not None:
            weights = [math.exp(value) for k, value in enumerate(before) if k != token]
            if max(weights) / sum(weights) >= min_share:
                expected = capped(before, token)
        assert after == expected


@settings(max_examples=300, deadline=None, suppress_health_check=FIXTURE)
@given(rows=rows, n=st.integers(1, 3), factor=st.sampled_from([0.0, 0.5, 1.0, 2.0, math.inf]))
def test_low_entropy_caps_along_trajectories_below_a_multiple_of_the_mean(rows, n, factor):
    *batch, level = zip(*rows, strict=True)
    entropies = [[value, value / 2] for value in level]
    means = [(first + second) / 2 for first, second in entropies]
    rows = edited(rule("LowEntropy", n=n, factor=factor), entropies, *batch)
    for (token, before, after), mean in zip(rows, means, strict=True):
        bound = factor * sum(means) / len(means) if sum(means) else 0
        if abs(mean - bound) > 1e-9 * bound or not bound:  # apart from ties in rounding
            is_capped = token is not None and mean <= bound
            assert after == (capped(before, token) if is_capped else before)


def test_an_uncapped_end_token_keeps_its_logit():
    logits = torch.tensor([[0.0, 1, 2, 3, 9], [0, 1, 9, 3, 2]])
    for strategy, at_the_end in ((zerogap.RailCap(n=1), 3), (rule("UncappedEnd", n=1), 9)):
        intervention = strategy.prepare(Context([[1, 2, END]], [], end_tokens=[END]))
        rows = Rows(torch.tensor([0, 0]), torch.tensor([2, 1]), torch.tensor([[1, 2], [1, -1]]))
        first, second = intervention.edit_logits(logits.clone(), rows).tolist()
        assert first == [0, 1, 2, 3, at_the_end]
        assert second == [0, 1, 3, 3, 2]  # other rail tokens are capped either way


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("ClearRunnerUp", {"n": 0}, r"n must be a whole number of at least 1 \(got 0\)"),
        ("ClearRunnerUp", {"min_share": 1.5}, r"between 0 and 1 \(got 1.5\)"),
        ("LowEntropy", {"factor": -1}, r"must not be negative \(got -1\)"),
    ],
)
def test_invalid_parameters_are_an_error(name, parameters, message):
    with pytest.raises(InputError, match=message):
        rule(name, **parameters)
