"""`zerogap.sample` with invalid arguments: one clear error each."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, T5Config, T5ForConditionalGeneration

import zerogap
from helpers.fuzzing import judge, outcome_of_call
from helpers.tiny_models import model, tokenizer
from zerogap.data.extraction import extraction_rule

PROMPTS = {"a": "Q: one\nA:", "b": "Q: two\nA:"}
NAN, INFINITE = float("nan"), float("inf")
SMALL = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2}


@dataclass
class WithFunction:
    scale: Any = len

    def prepare(self, context):
        return zerogap.RailCap(n=1).prepare(context)


@dataclass
class Returning:
    """A strategy whose `prepare` returns a value."""

    value: Any

    def prepare(self, context):
        return self.value


class WithoutContext:
    def prepare(self):
        return zerogap.Intervention()


class Intervening:
    """A strategy with an intervention of these functions."""

    def __init__(self, **functions: Any) -> None:
        self.functions = functions

    def prepare(self, context):
        return zerogap.Intervention(**self.functions)


def editing(edit: Callable[[torch.Tensor], Any]) -> Intervening:
    return Intervening(edit_logits=lambda logits, rows: edit(logits))


def filtering(keep: Callable[[list[str]], Any]) -> Intervening:
    return Intervening(filter_responses=lambda greedy, ids, texts: keep(texts))


def headless() -> Any:
    return model("llama").model


def without_finite_weights(net: Any) -> Any:
    net.model.embed_tokens.weight.data[:] = NAN
    return net


EDITS: dict[str, Callable[[torch.Tensor], Any]] = {
    "nothing": lambda logits: None,
    "an array": lambda logits: logits.numpy(),
    "a list": lambda logits: logits.tolist(),
    "fewer columns": lambda logits: logits[:, :-1],
    "more columns": lambda logits: torch.cat([logits, logits], dim=1),
    "one row": lambda logits: logits[0],
    "more rows": lambda logits: torch.cat([logits, logits]),
    "no rows": lambda logits: logits[:0],
    "whole numbers": lambda logits: logits.long(),
    "flags": lambda logits: logits > 0,
    "complex numbers": lambda logits: logits + 1j,
    "another device": lambda logits: logits.to("meta"),
    "NaN": lambda logits: logits * NAN,
    "only -inf": lambda logits: logits - INFINITE,
}

INVALID: dict[str, list[Any]] = {
    "model": [
        None, "gpt2", 5, object(), torch.nn.Linear(2, 2), type(model("llama")), headless(),
        BertForMaskedLM(BertConfig(vocab_size=300, num_hidden_layers=1, **SMALL)),
        T5ForConditionalGeneration(
            T5Config(vocab_size=300, d_model=16, d_ff=16, num_layers=1, decoder_start_token_id=0)
        ),
        model("llama", vocab_size=100), model("llama").to("meta"),
        without_finite_weights(model("llama")),
    ],
    "tokenizer": [None, "gpt2", 5, type(tokenizer()), tokenizer().backend_tokenizer, str.split],
    "prompts": [
        "hello", b"hello", bytearray(b"a"), 5, None, len, [], {}, (), iter([]), [""], ["a", ""],
        ["a", None], [3], [b"a"], [["a"]], {"a": ""}, {"a": 5}, {"a": None}, {1: "a"}, {None: "a"},
        {"a": "x" * 400}, {"a", "b"}, frozenset({"a", "b"}), pd.DataFrame({"prompt": ["x"]}),
        np.array([["a", "b"]]), np.array("a"), ["half a pair \ud800"], {"half a pair \ud800": "x"},
        {("a", "b"): "x"}, Path("prompts.txt"), [Path("a")], [True], np.array([1.0]),
    ],
    "num_samples": [
        0, -1, 2.5, 2.0, "5", "", True, np.True_, None, NAN, INFINITE, [2], {}, np.int64(0),
        np.float64(2), np.array([2]), Decimal(2), 10**9, 10**12, 2**31, 10**400, len, 2j,
    ],
    "max_new_tokens": [
        0, -3, 2.5, "5", True, None, 10_000, INFINITE, NAN, 2**31, 10**400, np.float32(3), [3],
        np.int8(-1), b"3",
    ],
    "temperature": [
        -1, -1e-9, NAN, INFINITE, -INFINITE, "0.7", None, True, np.True_, [0.7], np.float32(NAN),
        10**400, 5e-324, 1e-40, torch.tensor(0.7), np.array([0.7]), Decimal("0.7"), 1j, {},
    ],
    "top_p": [
        0, -1, 2, 1.0001, NAN, INFINITE, "1", None, True, np.float64(NAN), np.True_, [1.0], {},
        Decimal("0.5"), Fraction(3, 2), 1j,
    ],
    "stop": [
        "", [""], [5], 5, None, ["Q:", ""], [None], b"Q", [b"Q"], [["Q"]], {"Q": 1}, True, 1.5,
        "x" * 1_000_000, ["Q" * 5_000], [str(i) for i in range(10_000)], ["\ud800"], [np.nan],
        pd.DataFrame({"Q": ["x"]}), len, np.array([["Q"]]),
    ],
    "seed": [
        -1, 0.5, 0.0, 1.0, "1", None, 2**63, 10**400, True, False, np.True_, np.float64(1), [1],
        np.int64(-1), NAN, Decimal(1),
    ],
    "batch_invariant": ["no", "", "yes", 0, 1, None, [], 2.0, NAN, np.array([True]), np.int64(1)],
    "batch_size": [
        0, -5, 2.5, "many", "AUTO", "", "2", None, True, np.True_, NAN, [2], np.array([2, 2]),
        np.int64(0), b"auto", {}, 10**400,
    ],
    "gold": [
        "1", b"1", 7, 1.5, True, len, ["1"], ["1", "2", "3"], {"a": "1"}, {"a": "1", "c": "2"},
        {"a": "1", "b": "2", "c": "3"}, {0: "1", 1: "2"}, ["one", "two"], ["1", ""], ["1", NAN],
        ["1", INFINITE], ["1", np.float32(NAN)], ["1", [2]], ["1", True], ["1", np.True_],
        ["1", {}], ["1", b"2"], ["1", 2j], ["1", "9" * 5000 + "x"], ["1", 10**5000], ["1", len],
        {"1", "2"}, frozenset({"1", "2"}), {1, 2}, pd.DataFrame({"a": ["1"], "b": ["2"]}), [], {},
        np.array([[1, 2]]),
    ],
    "strategy": [
        "railcap", zerogap.RailCap, 4, object(), zerogap.Shortcut(), [], {}, len, True,
        [zerogap.RailCap()], WithoutContext(), *map(Returning, [None, 5, "x", zerogap.RailCap()]),
        *map(editing, EDITS.values()),
        *(filtering(keep) for keep in (
            lambda texts: None, lambda texts: [True], lambda texts: 5,
            lambda texts: ["yes"] * len(texts), lambda texts: [0] * len(texts),
            lambda texts: [True] * (len(texts) + 1),
        )),
        Intervening(edit_logits=5),
        Intervening(wrap_decoder=lambda decoder: None),
    ],
    "extraction": [
        "", "numerics", "math:pi", "nothing.such:function", "os:getcwd", len, None, 5, True,
        b"numeric", ["numeric"], {}, extraction_rule("numeric"), "numeric ", ":", "a:", ":a",
        "sys:exit", "builtins:len", "builtins:exit", "..a:b", "thinking/", "thinking/none",
        "thinking/" * 5_000 + "numeric", "\0:a", "a" * 5_000, "os:path.join", "numeric\n",
    ],
    "output": [
        "", ".", 5, b"samples.parquet", True, [], "a\0b", "x" * 300, "/dev/null", "a/" * 3_000, {},
        "/proc/samples.parquet", "samples.csv",
    ],
    "base_model": ["", ".", 5, b"x", True, "nowhere", "a\0b", "x" * 5_000, []],
    "neurons": ["", 5, b"x", True, "nowhere", "a\0b", "x" * 5_000, [], "."],
}  # fmt: skip


def _shown(value: Any) -> str:
    try:
        return f"{value!r:.60}"
    except ValueError:  # thousands of digits
        return "a huge number"


CASES = {
    f"{key} {number}: {_shown(value)}": {key: value}
    for key, values in INVALID.items()
    for number, value in enumerate(values)
}


def test_every_invalid_argument_is_a_clear_error(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with_files = {
        "output in a file": {"output": tmp_path / "file" / "samples.parquet"},
        "a strategy with a function, output": {"strategy": WithFunction(), "output": "a.parquet"},
        "no such base model": {
            "strategy": zerogap.Shortcut(), "base_model": "none", "neurons": "none.parquet",
        },
    }  # fmt: skip
    usual = {"model": model("llama"), "tokenizer": tokenizer(), "prompts": PROMPTS}
    usual |= {"num_samples": 2, "max_new_tokens": 3}
    outcomes = {
        name: outcome_of_call(lambda: zerogap.sample(**usual | changed))  # noqa: B023
        for name, changed in {**CASES, **with_files}.items()
    }
    assert len(outcomes) >= 300
    judge("zerogap.sample", outcomes)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("options", "as_usual"),
    [
        ({"stop": "3"}, {"stop": ["3"]}),
        ({"gold": {"a": 1, "b": 2.0}}, {"gold": {"a": "1", "b": "2"}}),
        ({"prompts": list(PROMPTS.values())}, {"prompts": {"0": PROMPTS["a"], "1": PROMPTS["b"]}}),
        ({"prompts": iter(PROMPTS.values())}, {"prompts": list(PROMPTS.values())}),
        ({"prompts": pd.Series(PROMPTS)}, {"prompts": PROMPTS}),
        (
            {"prompts": pd.Series(PROMPTS), "gold": pd.Series({"b": "2", "a": "1"})},
            {"prompts": PROMPTS, "gold": {"a": "1", "b": "2"}},
        ),
        ({"temperature": 1}, {"temperature": 1.0}),
        (
            {"temperature": np.float32(0.5), "top_p": Fraction(1, 2)},
            {"temperature": 0.5, "top_p": 0.5},
        ),
        (
            {name: np.int64(2) for name in ("num_samples", "max_new_tokens", "seed", "batch_size")},
            dict.fromkeys(("num_samples", "max_new_tokens", "seed", "batch_size"), 2),
        ),
        ({"batch_invariant": np.True_}, {"batch_invariant": True}),
        ({"stop": (text for text in ["3", "4"])}, {"stop": ["3", "4"]}),
        ({"gold": {"a": None, "b": np.int8(2)}}, {"gold": {"a": None, "b": "2"}}),
        (
            {"strategy": editing(lambda logits: logits.float())},
            {"strategy": editing(lambda logits: logits.float().double())},
        ),
    ],
)
def test_what_can_only_mean_one_thing_is_accepted(options, as_usual, tmp_path) -> None:
    def sample(changed):
        options = {"prompts": PROMPTS, "num_samples": 2, "max_new_tokens": 6} | changed
        return zerogap.sample(model("llama"), tokenizer(), **options)

    output = tmp_path / "samples.parquet"  # a path may be a text
    if "strategy" not in options:  # those here have functions
        options = {**options, "output": str(output)}
    assert sample(options).equals(sample(as_usual))
    assert output.is_file() == ("output" in options)
