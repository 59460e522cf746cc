"""The benchmarks run: on the real shapes, shrunk, and what they count is right."""

import sys

import pytest
import torch

from helpers.paths import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
batch, common, floors, scaling, strategies = map(
    __import__, ("batch", "common", "floors", "scaling", "strategies")
)
import sampler as against_generate  # noqa: E402

SMALL = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
}  # fmt: skip
SHRUNK = {
    "llama-2-7b": SMALL,
    "pythia-12b": SMALL,
    "gemma-4-e2b": SMALL | {
        "vocab_size": 32000, "vocab_size_per_layer_input": 32000, "num_hidden_layers": 10,
        "head_dim": 8, "global_head_dim": 16, "num_kv_shared_layers": 5,
        "hidden_size_per_layer_input": 4,
        "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 2,
    },
}  # fmt: skip


@pytest.fixture
def shrunk(monkeypatch):
    for name, small in SHRUNK.items():
        config, values = common.SHAPES[name]
        monkeypatch.setitem(common.SHAPES, name, (config, values | small))


@pytest.mark.parametrize(
    ("name", "parameters"), [("llama-2-7b", 6_738_415_616), ("pythia-12b", 11_846_072_320)]
)
def test_shapes_are_the_models(name, parameters):
    made = common.model(name, "bfloat16", "meta")
    assert sum(one.numel() for one in made.parameters()) == parameters
    weights, multiplied, attentions = floors.work(made)
    tables = made.config.vocab_size * made.config.hidden_size
    assert weights == 2 * (parameters - tables)
    assert attentions == [(made.config.hidden_size, 2**40)] * made.config.num_hidden_layers
    assert 0 < weights / 2 - multiplied < 0.001 * weights  # norms and biases


def test_gemma_has_the_parameters_it_is_named_for():
    """2.3 billion without the tables that a token is looked up in, and of these a head."""
    made = common.model("gemma-4-e2b", "bfloat16", "meta")
    weights, _, attentions = floors.work(made)
    assert weights / 2 == pytest.approx(2.3e9, rel=0.03)
    assert sorted(set(attentions)) == [(8 * 256, 512), (8 * 512, 2**40)]
    assert len(attentions) == 35


@pytest.mark.parametrize("name", SHRUNK)
def test_floors_of_every_shape(name, shrunk):
    found = floors.measured(name, "bfloat16", "cpu", rows=6, questions=3, samples=3, tokens=5)
    assert found["tokens"] == 3 * 3 * 5
    assert found["floor"] > 0
    assert found["floor"] >= max(found["bytes_floor"], found["operations_floor"])
    assert found["prefill"] + found["stepping"] < found["seconds"]


def test_operations_of_a_step(shrunk, monkeypatch):
    """Against a count by hand: one row, whose question is all that is not shared."""
    monkeypatch.setattr(floors, "_rates", lambda *_: (1.0, 1.0))
    found = floors.measured(
        "llama-2-7b", "float32", "cpu", rows=1, questions=2, samples=1, tokens=2
    )
    made = common.model("llama-2-7b", "float32", "cpu")
    linear = 2 * (4 * 32 * 32 + 3 * 32 * 48) + 32 * 32000
    seen = [len(prompt.token_ids) + 1 for prompt in common.prompts("llama-2-7b", 2)]
    assert found["operations_floor"] == 2 * 2 * linear + 2 * 4 * 32 * sum(seen)
    weights = sum(one.nbytes for one in made.parameters()) - 4 * 32 * 32000
    assert found["bytes_floor"] == 2 * weights + 2 * (2 * 32 * 4) * sum(seen)


@pytest.mark.parametrize(
    "contender",
    ["zerogap", "zerogap, a question at a time", "generate, prompt prefilled once", "generate"],
)
def test_contenders_draw_what_they_say(contender, shrunk):
    found = against_generate.measured(
        {
            "contender": contender, "model": "llama-2-7b", "dtype": "float32", "device": "cpu",
            "samples": 3, "tokens": 4, "questions": 2, "rows": 6,
        }
    )  # fmt: skip
    assert found["speed"] > 0
    assert found["prompt"] > 700


def test_strategies_are_given_the_same_steps(shrunk, monkeypatch):
    runs, beside = [], strategies._beside

    def noted(edit, inside, device):
        timed = beside(edit, inside, device)
        runs.append([])

        def edit_and_note(logits, rows):
            runs[-1].append((rows.question.tolist(), rows.tokens.tolist()))
            return timed(logits, rows)

        return edit_and_note

    monkeypatch.setattr(strategies, "_beside", noted)
    found = strategies.measured(
        "llama-2-7b", "float32", "cpu", rows=100, questions=2, tokens=6, repeats=1
    )
    assert list(found) == ["Identity", "RailCap", "LNE-blocking", "Shortcut"]
    assert runs[0] == runs[1] == runs[2]
    assert len(runs[0]) == 6
    assert found["RailCap"][0]["edit"] > 0


def test_scaling_and_batch(shrunk):
    found = scaling.measured("llama-2-7b", "float32", "cpu", 3, plans=[(2, 3, 1), (2, 3, 2)])
    assert int(found[1]["prefix"]) == 2 * int(found[0]["prefix"])
    found = batch.measured("llama-2-7b", "float32", "cpu", steps=2, rows=[1, 60])
    assert [one["rows"] for one in found] == [1, 60]
    assert all(one["seconds"] > 0 for one in found)
    assert torch.get_default_dtype() == torch.float32
