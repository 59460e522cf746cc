import sys

import pytest

from zerogap.errors import InputError
from zerogap.strategies.base import Context, Intervention, build
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
    ("name", "wrong"),
    [
        ("railcap", {"n": 0, "suppression": "no", "successor": "no", "m": 4}),
        ("lne_blocking", {"rounding": "up", "threshold": -1, "beta": 0}),
        ("ted", {"tau": -1, "max_length": 0, "when_empty": "all"}),
    ],
)
def test_an_invalid_parameter_is_named(name, wrong):
    for parameter, value in wrong.items():
        with pytest.raises(InputError, match=rf"^strategies: class '{name}': .*{parameter}"):
            build({"class": name, "parameters": {parameter: value}})


def test_an_intervention_filters_or_changes_the_decoding():
    def keep(trajectory, token_ids, texts):
        return [True] * len(texts)

    for change in ("edit_logits", "wrap_decoder"):
        with pytest.raises(InputError, match="make two strategies of it"):
            Intervention(**{change: lambda *changed: changed[0]}, filter_responses=keep)
