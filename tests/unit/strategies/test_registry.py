import re
import sys

import pytest

from zerogap.errors import InputError
from zerogap.strategies.base import Context, Intervention, build, response_filter
from zerogap.strategies.registry import BUILT_IN

CONTEXT = Context([[1, 2, 3, 4, 5, 6]], [[0.1] * 6])


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_strategy_is_what_the_registry_says(name):
    strategy, entry = build({"class": name}), BUILT_IN[name]
    if entry.needs_base_model:
        with pytest.raises(InputError, match="needs the base model"):
            strategy.prepare(CONTEXT)
    else:
        intervention = strategy.prepare(CONTEXT)
        assert (intervention.filter_responses is not None) == entry.filters_responses


def test_a_strategy_may_be_in_the_working_directory(monkeypatch, tmp_path):
    (tmp_path / "next_to_me.py").write_text(
        "from zerogap.strategies.base import Intervention\n"
        "class Scale:\n"
        "    def __init__(self, strength):\n"
        "        self.strength = strength\n"
        "    def prepare(self, context):\n"
        "        return Intervention(edit_logits=lambda logits, rows: logits * self.strength)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])
    strategy = build({"class": "next_to_me:Scale", "parameters": {"strength": 2}})
    assert strategy.prepare(CONTEXT).edit_logits(3, None) == 6


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"class": "magic"}, r"^strategies: class: 'magic' must be one of identity"),
        ({"class": "nowhere.at_all:thing"}, "cannot import"),
        ({"class": "zerogap.strategies.railcap:nothing"}, "cannot import"),
        ({"class": "railcap", "parameters": {"m": 4}}, "railcap.*'m'"),
    ],
)
def test_a_strategy_that_cannot_be_built_is_an_input_error(entry, message):
    with pytest.raises(InputError, match=message):
        build(entry)


@pytest.mark.parametrize(
    ("name", "parameter", "value", "message"),
    [
        ("railcap", "n", 0, "RailCap: n must be a whole number of at least 1 (got 0)"),
        ("railcap", "suppression", "no", "RailCap: suppression must be 'cap' or 'ban' (got 'no')"),
        ("railcap", "successor", "no", "RailCap: successor must be 'last' or 'first' (got 'no')"),
        ("lne_blocking", "rounding", "up", "rounding must be 'floor' or 'nearest' (got 'up')"),
        ("lne_blocking", "threshold", -1, "threshold must be a whole number of at least 0 (got -1"),
        ("lne_blocking", "beta", 0, "LNE-blocking: beta must be a positive number (got 0)"),
        ("ted", "max_length", 0, "TED: max_length must be a whole number of at least 1 (got 0)"),
        ("ted", "when_empty", "all", "TED: when_empty must be 'unsolved' or 'unfiltered' (got"),
    ],
)
def test_an_invalid_parameter_is_one_line(name, parameter, value, message):
    with pytest.raises(InputError, match=rf"^strategies: class '{name}': .*{re.escape(message)}"):
        build({"class": name, "parameters": {parameter: value}})


def test_an_intervention_filters_or_changes_the_decoding():
    def keep(trajectory, token_ids, texts):
        return [True] * len(texts)

    for change in ("edit_logits", "wrap_decoder"):
        with pytest.raises(InputError, match="make two strategies of it"):
            Intervention(**{change: lambda *changed: changed[0]}, filter_responses=keep)


def test_a_strategy_that_does_not_filter_has_no_filter():
    with pytest.raises(InputError, match="RailCap does not filter responses; remove filter_of"):
        response_filter(build({"class": "railcap"}))
