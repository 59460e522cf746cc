"""The benchmarks run on small versions of the real work, and count operations correctly."""

import json
import sys

import pytest
import torch

from helpers.paths import ROOT
from zerogap import config
from zerogap.engine.decoder import Response

sys.path.insert(0, str(ROOT / "benchmarks"))
common, contenders, dag_size, floors, kernels, score_files, strategies = map(
    __import__,
    ("common", "contenders", "dag_size", "floors", "kernels", "score_files", "strategies"),
)

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
        config_class, values = common.SHAPES[name]
        monkeypatch.setitem(common.SHAPES, name, (config_class, values | small))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("smollm2-135m", 134_515_008), ("llama-2-7b", 6_738_415_616), ("pythia-12b", 11_846_072_320)],
)
def test_benchmark_models_have_the_parameter_counts_of_the_real_ones(name, parameters):
    model = common.model(name, "bfloat16", "meta")
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters
    weights, multiplied, attentions = floors.work(model)
    table = model.config.vocab_size * model.config.hidden_size
    assert weights == 2 * (parameters - (0 if model.config.tie_word_embeddings else table))
    assert attentions == [(model.config.hidden_size, 2**40)] * model.config.num_hidden_layers
    assert 0 < weights / 2 - multiplied < 0.001 * weights  # norms and biases


def test_gemma_has_two_billion_parameters_without_embedding_tables():
    model = common.model("gemma-4-e2b", "bfloat16", "meta")
    weights, _, attentions = floors.work(model)
    assert weights / 2 == pytest.approx(2.3e9, rel=0.03)
    assert sorted(set(attentions)) == [(8 * 256, 512), (8 * 512, 2**40)]
    assert len(attentions) == 35


@pytest.mark.parametrize("name", SHRUNK)
def test_floor_is_the_larger_of_memory_traffic_and_arithmetic(name, shrunk):
    result = floors.measure(name, "bfloat16", "cpu", rows=6, questions=3, samples=3, tokens=5)
    assert result["tokens"] == 3 * 3 * 5
    assert result["floor"] >= max(result["bytes_floor"], result["operations_floor"]) > 0
    assert result["prefill"] + result["stepping"] < result["seconds"]


def test_operations_and_bytes_of_a_step_equal_a_count_by_hand(shrunk, monkeypatch):
    """One row: its question is all that is not shared."""
    monkeypatch.setattr(floors, "rates", lambda *_: (1.0, 1.0))
    result = floors.measure(
        "llama-2-7b", "float32", "cpu", rows=1, questions=2, samples=1, tokens=2
    )
    model = common.model("llama-2-7b", "float32", "cpu")
    linear = 2 * (4 * 32 * 32 + 3 * 32 * 48) + 32 * 32000
    seen = [len(prompt.token_ids) + 1 for prompt in common.prompts("llama-2-7b", 2)]
    assert result["operations_floor"] == 2 * 2 * linear + 2 * 4 * 32 * sum(seen)
    weights = sum(parameter.nbytes for parameter in model.parameters()) - 4 * 32 * 32000
    assert result["bytes_floor"] == 2 * weights + 2 * (2 * 32 * 4) * sum(seen)


@pytest.mark.parametrize(
    ("engine", "strategy"),
    [
        ("zerogap", "identity"), ("zerogap", "railcap"), ("zerogap", "lne_blocking"),
        ("generate", "identity"), ("generate_prefilled", "identity"),
    ],
)  # fmt: skip
def test_every_engine_draws_all_tokens_behind_long_prompts(engine, strategy, shrunk, tmp_path):
    folder = common.model_folder("llama-2-7b", "float32", tmp_path)
    prompts = common.prompts("llama-2-7b", 2)
    work = contenders.Work(
        str(folder), "float32", prompts,
        samples=3, tokens=6, natural=False, strategy=strategy, rows=6,
    )  # fmt: skip
    assert len(prompts[0].token_ids) > 700
    assert contenders.ENGINES[engine](work)() == 2 * 3 * 6


def test_responses_end_naturally_on_request(tmp_path):
    work = contenders.Work(
        str(common.model_folder("llama2", "float32", tmp_path)), "float32",
        common.prompts("llama2", 4),
        samples=2, tokens=100, natural=True, strategy="identity", rows=None,
    )  # fmt: skip
    assert 0 < contenders.zerogap(work)() < 4 * 2 * 100


def test_samples_that_agree_so_far_count_as_one_row():
    responses = [Response(tokens, "length") for tokens in ([1, 2, 3], [1, 2, 4], [1, 5, 3])]
    assert strategies.computed_rows([(0, responses), (1, responses[:1])]) == 1 + 2 + 3 + 3


def test_all_strategies_are_timed(shrunk):
    result, rows_per_token = strategies.measure(
        "llama-2-7b", "float32", "cpu", rows=100, questions=2, tokens=6, repeats=1
    )
    assert list(result) == ["Identity", "RailCap", "LNE-blocking", "Shortcut"]
    assert all(1 / 50 < rows_per_token[name] <= 1 for name in result)
    assert result["RailCap"][0]["edit"] > 0


@pytest.mark.parametrize("off", ["", "draw", "all"])
def test_runs_without_kernels_are_timed(off, shrunk, monkeypatch):
    monkeypatch.setenv("ZEROGAP_WITHOUT_KERNELS", "")  # restored after the test
    work = {"questions": 2, "samples": 3, "tokens": 4}
    assert kernels.measure("llama-2-7b", "float32", off=off, **work) > 0
    assert torch.get_default_dtype() == torch.float32


def test_the_planned_run_has_the_size_that_its_row_states(tmp_path):
    overlay = tmp_path / "large.yaml"
    overlay.write_text(json.dumps(dag_size.configuration(2, 3, 7)))
    planned = config.load([ROOT / "config.yaml", overlay])
    assert list(planned.models) == ["model0", "model1"]
    assert list(planned.benchmarks) == planned.question_owners
    assert (len(planned.benchmarks), len(planned.strategies)) == (3, 7)
    assert not planned.ablation


def test_a_dry_run_plans_more_jobs_than_there_are_cells():
    result = dag_size.measure(models=1, benchmarks=1, strategies=5)
    assert result["jobs"] > 5
    assert result["seconds"] > 0
    assert result["bytes"] > 2**20


@pytest.mark.parametrize("kind", score_files.KINDS)
def test_files_of_every_kind_are_scored(kind):
    assert score_files.measure(kind, files=2, questions=8, samples=3)["seconds"] > 0
