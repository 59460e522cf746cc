import sys
import types
from dataclasses import dataclass

import pytest

from zerogap.errors import InputError
from zerogap.strategies.base import CLASSES, Context, Intervention, build

CONTEXT = Context([[1, 2, 3, 4, 5, 6]], [[0.1] * 6])


@pytest.mark.parametrize("name", [name for name in CLASSES if name != "shortcut"])
def test_ours_go_by_their_short_names(name):
    assert isinstance(build({"class": name}).prepare(CONTEXT), Intervention)


def test_somebody_elses_goes_by_module_and_class(monkeypatch):
    @dataclass
    class Mine:
        strength: int

        def prepare(self, context):
            return Intervention(edit=lambda logits, rows: logits * self.strength)

    module = types.ModuleType("somebody")
    module.Mine = Mine
    monkeypatch.setitem(sys.modules, "somebody", module)
    made = build({"class": "somebody:Mine", "parameters": {"strength": 2}})
    assert made.prepare(CONTEXT).edit(3, None) == 6


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"class": "magic"}, "magic"),
        ({"class": "nowhere.at_all:thing"}, "cannot be imported"),
        ({"class": "zerogap.strategies.railcap:nothing"}, "cannot be imported"),
        ({"class": "railcap", "parameters": {"m": 4}}, "railcap.*'m'"),
        ({"class": "railcap", "parameters": {"n": 0}}, "railcap.*n is 0"),
    ],
)
def test_what_cannot_be_built_is_said(entry, said):
    with pytest.raises(InputError, match=said):
        build(entry)
