"""`zerogap.sample` with invalid arguments: one clear error each."""

from dataclasses import dataclass
from typing import Any

import pytest

import zerogap
from helpers.fuzzing import outcome_of_call
from helpers.tiny_models import model, tokenizer

PROMPTS = {"a": "Q: one\nA:", "b": "Q: two\nA:"}
NAN, INFINITE = float("nan"), float("inf")


@dataclass
class WithFunction:
    scale: Any = len

    def prepare(self, context):
        return zerogap.RailCap(n=1).prepare(context)


INVALID: dict[str, list[Any]] = {
    "prompts": [
        "hello", b"hello", 5, None, [], {}, [""], ["a", ""], ["a", None], [3], [["a"]],
        {"a": ""}, {"a": 5}, {1: "a"}, {"a": "x" * 400},
    ],
    "num_samples": [0, -1, 2.5, "5", True, None, NAN],
    "max_new_tokens": [0, -3, 2.5, "5", True, None, 10_000, INFINITE],
    "temperature": [-1, -1e-9, NAN, INFINITE, "0.7", None, True, [0.7]],
    "top_p": [0, -1, 2, 1.0001, NAN, INFINITE, "1", None, True],
    "stop": ["", [""], [5], 5, None, ["Q:", ""], [None]],
    "seed": [-1, 0.5, "1", None, 2**63, True],
    "batch_size": [0, -5, 2.5, "many", None, True],
    "gold": [
        "1", 7, ["1"], ["1", "2", "3"], {"a": "1"}, {"a": "1", "c": "2"}, ["one", "two"],
        ["1", ""], ["1", NAN], ["1", INFINITE], ["1", [2]], ["1", True], ["1", {}],
        ["1", "9" * 5000 + "x"],
    ],
    "strategy": ["railcap", zerogap.RailCap, 4, object(), zerogap.Shortcut()],
    "extraction": ["", "numerics", "math:pi", "nothing.such:function", "os:getcwd"],
}  # fmt: skip
CASES = {
    f"{key}={value!r:.60}": {key: value} for key, values in INVALID.items() for value in values
}


def test_every_invalid_argument_is_a_clear_error(judge, tmp_path) -> None:
    net, words = model("llama"), tokenizer()
    missing = {
        "output=folder": {"output": tmp_path},
        "output in a file": {"output": tmp_path / "file" / "samples.parquet"},
        "a strategy with a function, output": {
            "strategy": WithFunction(), "output": tmp_path / "samples.parquet",
        },
        "no such base model": {
            "strategy": zerogap.Shortcut(), "base_model": tmp_path / "none",
            "neurons": tmp_path / "none.parquet",
        },
    }  # fmt: skip
    (tmp_path / "file").touch()
    outcomes = {}
    for name, changed in {**CASES, **missing}.items():
        options = {"prompts": PROMPTS, "num_samples": 2, "max_new_tokens": 3} | changed
        outcomes[name] = outcome_of_call(lambda: zerogap.sample(net, words, **options))  # noqa: B023
    assert len(outcomes) >= 60
    judge("zerogap.sample", outcomes)


@pytest.mark.parametrize(
    ("options", "as_usual"),
    [
        ({"stop": "3"}, {"stop": ["3"]}),
        ({"gold": {"a": 1, "b": 2.0}}, {"gold": {"a": "1", "b": "2"}}),
        ({"prompts": list(PROMPTS.values())}, {"prompts": {"0": PROMPTS["a"], "1": PROMPTS["b"]}}),
        ({"temperature": 1}, {"temperature": 1.0}),
    ],
)
def test_what_can_only_mean_one_thing_is_accepted(options, as_usual, tmp_path) -> None:
    def sample(changed):
        options = {"prompts": PROMPTS, "num_samples": 2, "max_new_tokens": 6} | changed
        return zerogap.sample(model("llama"), tokenizer(), **options)

    output = tmp_path / "samples.parquet"  # a path may be a text
    assert sample({**options, "output": str(output)}).equals(sample({**as_usual, "output": None}))
    assert output.is_file()
