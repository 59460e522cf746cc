"""A call that repeats an interrupted one with anything changed gives what a fresh call gives."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pytest
import torch

import zerogap
from helpers.neuron_tables import write_neurons
from helpers.tiny_models import model, tokenizer
from zerogap.io.resume import Journal

NUM_PROMPTS, PER_PART = 8, 4


@dataclass
class Shift:
    """A strategy whose parameter is a tensor."""

    shift: torch.Tensor

    def prepare(self, context):
        def edit_logits(logits, rows):
            return logits + self.shift

        return zerogap.strategies.base.Intervention(edit_logits=edit_logits)


def neurons(path, layer):
    return write_neurons(path, layer, range(40))


@pytest.fixture
def arguments(tmp_path, monkeypatch) -> dict[str, Any]:
    monkeypatch.setattr("zerogap.sampling.cell.SAMPLES_PER_CHUNK", 2 * PER_PART)
    model("llama", 2).save_pretrained(tmp_path / "base")
    return {
        "model": model("llama"),
        "tokenizer": tokenizer(),
        "prompts": [f"Q: {index} and {index}?\nA:" for index in range(NUM_PROMPTS)],
        "num_samples": 2,
        "max_new_tokens": 4,
        "strategy": zerogap.Shortcut(),
        "base_model": tmp_path / "base",
        "neurons": neurons(tmp_path / "neurons.parquet", layer=0),
    }


def saved_base(folder):
    model("llama", 3).save_pretrained(folder)
    return {"base_model": folder}


def with_edited_head():
    net = model("llama")
    with torch.no_grad():
        net.lm_head.weight[3].neg_()
    return net


def with_other_rope_theta():
    changed = model("llama")
    changed.config.rope_parameters["rope_theta"] = 100.0
    rebuilt = type(changed)(changed.config).double().eval()
    rebuilt.load_state_dict(changed.state_dict())
    return rebuilt


CHANGES: dict[str, Callable[[Any], dict[str, Any]]] = {
    "another base model": lambda folder: saved_base(folder / "other"),
    "a base model edited in place": lambda folder: saved_base(folder / "base"),
    "other neurons": lambda folder: {"neurons": neurons(folder / "other.parquet", layer=2)},
    "other neurons under the same name": lambda folder: {
        "neurons": neurons(folder / "neurons.parquet", layer=2)
    },
    "an edited LM head": lambda _: {"model": with_edited_head()},
    "another dtype": lambda _: {"model": model("llama").bfloat16()},
    "another rope_theta": lambda _: {"model": with_other_rope_theta()},
    "another strategy": lambda _: {"strategy": zerogap.RailCap(n=1)},
}


def interrupt_after_first_part(monkeypatch, arguments, output) -> None:
    def save_and_stop(journal, *part):
        save(journal, *part)
        raise KeyboardInterrupt

    save = Journal.add
    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(Journal, "add", save_and_stop)
        zerogap.sample(**arguments, output=output)


@pytest.mark.parametrize("change", CHANGES)
def test_an_interrupted_call_is_not_mixed_with(change, arguments, tmp_path, monkeypatch, capsys):
    output = tmp_path / "samples.parquet"
    interrupt_after_first_part(monkeypatch, arguments, output)
    changed = arguments | CHANGES[change](tmp_path)
    fresh = zerogap.sample(**changed)
    table = zerogap.sample(**changed, output=output)
    assert "starting over" in capsys.readouterr().out
    pd.testing.assert_frame_equal(table, fresh)


def test_another_state_of_the_same_strategy_is_not_mixed(arguments, tmp_path, monkeypatch):
    output = tmp_path / "samples.parquet"
    del arguments["base_model"], arguments["neurons"]
    steps = torch.arange(300)
    interrupt_after_first_part(monkeypatch, arguments | {"strategy": Shift(steps * 0.001)}, output)
    changed = arguments | {"strategy": Shift(steps * 0.02)}
    pd.testing.assert_frame_equal(
        zerogap.sample(**changed, output=output), zerogap.sample(**changed)
    )


def test_an_unchanged_call_resumes(arguments, tmp_path, monkeypatch, capsys):
    output = tmp_path / "samples.parquet"
    interrupt_after_first_part(monkeypatch, arguments, output)
    loaded = []
    load = Journal.get

    def count(journal, key):
        loaded.append(load(journal, key))
        return loaded[-1]

    monkeypatch.setattr(Journal, "get", count)
    table = zerogap.sample(**arguments, output=output)
    assert [part is not None for part in loaded] == [True, False]
    assert "starting over" not in capsys.readouterr().out
    pd.testing.assert_frame_equal(table, zerogap.sample(**arguments), check_dtype=False)
