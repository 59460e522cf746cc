"""The arguments of requests to vLLM."""

import json
import re
from types import SimpleNamespace

import pytest

from zerogap import RailCap
from zerogap.integrations.vllm.arguments import RailCapArguments, num_lne_blocks

MODEL = SimpleNamespace(max_model_len=3, get_vocab_size=lambda: 10)


def params(**extra_args):
    return SimpleNamespace(extra_args=extra_args or None)


def test_an_object_and_its_json_text_are_the_same():
    request = {"trajectory": [5, 6], "n": 2, "suppression": "ban"}
    parsed = RailCapArguments.parse(params(railcap=request))
    assert parsed == RailCapArguments([5, 6], RailCap(2, "ban"))
    assert parsed == RailCapArguments.parse(params(railcap=json.dumps(request)))


def test_a_request_without_the_strategy_has_no_arguments():
    assert RailCapArguments.parse(params()) is None
    assert num_lne_blocks(params(railcap={"trajectory": [1]})) is None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1, 2], "railcap: must be an object with trajectory, n, suppression, successor (got [1"),
        ("{", "railcap: is not JSON"),
        ({}, "trajectory must be a list of token ids"),
        ({"trajectory": [1, True]}, "trajectory must be a list of token ids"),
        ({"trajectory": [1, -1]}, "trajectory must be a list of token ids"),
        ({"trajectory": []}, "trajectory is empty"),
        ({"trajectory": [1], "n": 0}, "n must be a whole number of at least 1 (got 0)"),
        ({"trajectory": [1], "m": 4}, "unknown 'm'; it takes trajectory, n, suppression, successo"),
    ],
)
def test_invalid_railcap_arguments_are_one_line(value, message):
    with pytest.raises(ValueError, match=rf"^[^\n]*{re.escape(message)}[^\n]*$"):
        RailCapArguments.parse(params(railcap=value))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "entropy must be the mean entropy (nats) of the greedy steps"),
        ({"entropy": -0.1}, "a number of at least 0 (got -0.1)"),
        ({"entropy": 0.1, "beta": 0}, "beta must be a positive number (got 0)"),
    ],
)
def test_invalid_lne_blocking_arguments_are_one_line(value, message):
    with pytest.raises(ValueError, match=rf"^[^\n]*{re.escape(message)}[^\n]*$"):
        num_lne_blocks(params(lne_blocking=value))


@pytest.mark.parametrize(
    ("trajectory", "usable", "warning"),
    [
        ([1, 2, 3], [1, 2, 3], ""),
        ([1, 2, 3, 4], [1, 2, 3], "of 4 tokens is longer than the context of 3"),
        ([1, 10, 2], [1], "token 10 of a trajectory is not in the vocabulary of 10 tokens"),
    ],
)
def test_a_trajectory_ends_where_the_model_cannot_follow(trajectory, usable, warning, caplog):
    assert RailCapArguments(trajectory, RailCap()).within(MODEL) == usable
    assert warning in caplog.text
    assert bool(caplog.text) == bool(warning)
