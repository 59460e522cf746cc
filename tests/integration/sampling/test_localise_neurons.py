"""Neuron localisation: the neurons of a fixed example, shards and memory."""

import gc
import weakref

import pandas as pd
import pytest
import torch

from helpers.job_inputs import (
    BENCHMARK,
    SAMPLING,
    write_exemplars,
    write_greedy,
    write_model,
    write_questions,
)
from zerogap.engine import loading
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
from zerogap.io import parquet
from zerogap.sampling import localisation

QUESTIONS = 40
PARAMETERS = {
    "sampling": SAMPLING | {"batch_size": "auto"},
    "benchmark": BENCHMARK | {"extraction": "helpers.rules:parity"},
    "neuron_localisation": {"fraction": 0.1, "group_size": 10, "num_questions": 20},
    "seed": 5,
    "metadata": {},
}  # fmt: skip
# From the first version of the search, which held all three models in memory.
CAUSAL = {
    (0, 0): 0.70, (0, 10): 1.35, (0, 20): 0.30, (0, 30): 0.80, (0, 40): 0.45,
    (1, 0): 1.20, (1, 10): 0.60, (1, 20): 0.85, (1, 30): 0.35, (1, 40): 1.00,
}  # fmt: skip
SELECTED = [(0, neuron) for neuron in range(10, 20)] + [(1, 4), (1, 5), (1, 7), (1, 9)]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    return {
        "contaminated": write_model(folder / "contaminated", 1),
        "clean": write_model(folder / "clean", 2),
        "base_model": write_model(folder / "base", 3),
        "questions": write_questions(folder, QUESTIONS, [i % 4 != 3 for i in range(QUESTIONS)]),
        "greedy": write_greedy(folder, [[i + 1, 2 * i + 2, 3] for i in range(QUESTIONS)]),
        "exemplars": write_exemplars(folder),
    }


def localise(inputs, output, **changed):
    localisation.localise_neurons(**inputs, output=output, **PARAMETERS | changed)


@pytest.fixture(scope="module")
def whole(inputs, tmp_path_factory):
    output = tmp_path_factory.mktemp("whole") / "neurons.parquet"
    localise(inputs, output)
    return output


def test_the_neurons_are_those_of_the_first_version(whole):
    table = parquet.read(whole, "neurons")
    selected = table[table.selected]
    assert list(zip(selected.layer, selected.neuron, strict=True)) == SELECTED
    for (layer, start), score in CAUSAL.items():
        group = table[(table.layer == layer) & (table.neuron // 10 == start // 10)]
        assert group.causal.to_numpy() == pytest.approx(score)


def test_at_most_two_models_are_in_memory(inputs, whole, tmp_path, monkeypatch):
    alive, counts = weakref.WeakSet(), []
    load = loading.load

    def counting_load(folder, dtype):
        gc.collect()
        net = load(folder, dtype)
        alive.add(net)
        counts.append(len(alive))
        return net

    monkeypatch.setattr(loading, "load", counting_load)
    localise(inputs, tmp_path / "neurons.parquet")
    assert counts == [1, 2, 1, 2, 2]  # contaminated, clean; base, contaminated; clean
    assert (tmp_path / "neurons.parquet").read_bytes() == whole.read_bytes()


def test_merged_shards_of_a_search_have_the_bytes_of_an_undivided_one(inputs, whole, tmp_path):
    shards = [tmp_path / f"neurons.shard-{shard}.parquet" for shard in range(3)]
    for shard, output in enumerate(shards):
        localise(inputs, output, shard=(shard, 3))
        assert not parquet.read(output, "neurons").selected.any()
    localisation.merge_neurons(shards=shards, output=tmp_path / "neurons.parquet")
    assert (tmp_path / "neurons.parquet").read_bytes() == whole.read_bytes()


def test_out_of_memory_makes_the_batches_smaller(inputs, whole, tmp_path, monkeypatch, capsys):
    """A device with room for four rows, for a model whose patched passes start with twenty."""
    step = SharedPromptDecoder.step

    def small_step(decoder, tokens):
        if len(tokens) > 4:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return step(decoder, tokens)

    monkeypatch.setattr(SharedPromptDecoder, "step", small_step)
    localise(inputs, tmp_path / "neurons.parquet")
    # 20, 10, 5, 2: three attempts in vain for each model unpatched, and three patched.
    assert capsys.readouterr().err.count("out of memory (CUDA out of memory.)") == 2 * 2 * 3
    table, expected = (
        parquet.read(path, "neurons") for path in (tmp_path / "neurons.parquet", whole)
    )
    pd.testing.assert_frame_equal(table, expected)
