"""The benchmarks run on small versions of the real models, and count operations correctly."""

import sys

import pytest
import torch

from helpers.cpu import skip_without_dot_products
from helpers.paths import ROOT
from zerogap.engine import cpu_kernels
from zerogap.engine.decoder import Response

sys.path.insert(0, str(ROOT / "benchmarks"))
attention, batch, common, contenders, floors, kernels, products, scaling, strategies = (
    __import__(name)
    for name in (
        "attention", "batch", "common", "contenders", "floors", "kernels", "products", "scaling",
        "strategies",
    )
)  # fmt: skip

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
    assert result["floor"] > 0
    assert result["floor"] >= max(result["bytes_floor"], result["operations_floor"])
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
        ("zerogap", "identity"),
        ("zerogap", "railcap"),
        ("zerogap", "lne_blocking"),
        ("generate", "identity"),
        ("generate_prefilled", "identity"),
    ],
)
def test_every_engine_draws_all_tokens_behind_long_prompts(engine, strategy, shrunk, tmp_path):
    folder = common.model_folder("llama-2-7b", "float32", tmp_path)
    prompts = common.prompts("llama-2-7b", 2)
    work = contenders.Work(
        str(folder),
        "float32",
        prompts,
        samples=3,
        tokens=6,
        natural=False,
        strategy=strategy,
        rows=6,
    )
    assert len(prompts[0].token_ids) > 700
    assert contenders.ENGINES[engine](work)() == 2 * 3 * 6


def test_responses_end_naturally_on_request(tmp_path):
    prompts = common.prompts("llama2", 4)
    work = contenders.Work(
        str(common.model_folder("llama2", "float32", tmp_path)), "float32", prompts,
        samples=2, tokens=100, natural=True, strategy="identity", rows=None,
    )  # fmt: skip
    assert 0 < contenders.zerogap(work)() < 4 * 2 * 100


def test_samples_that_agree_so_far_count_as_one_row():
    responses = [Response(tokens, "length") for tokens in ([1, 2, 3], [1, 2, 4], [1, 5, 3])]
    assert strategies.computed_rows([(0, responses), (1, responses[:1])]) == 1 + 2 + 3 + 3


def test_all_strategies_are_timed_on_the_same_steps(shrunk, monkeypatch):
    runs, timed_on_a_copy = [], strategies.timed_on_a_copy

    def recorded(edit, seconds, device):
        timed = timed_on_a_copy(edit, seconds, device)
        runs.append([])

        def edit_and_record(logits, rows):
            runs[-1].append((rows.question.tolist(), rows.tokens.tolist()))
            return timed(logits, rows)

        return edit_and_record

    monkeypatch.setattr(strategies, "timed_on_a_copy", recorded)
    result, rows_per_token = strategies.measure(
        "llama-2-7b", "float32", "cpu", rows=100, questions=2, tokens=6, repeats=1
    )
    assert list(result) == ["Identity", "RailCap", "LNE-blocking", "Shortcut"]
    assert all(1 / 50 < rows_per_token[name] <= 1 for name in result)
    assert runs[0] == runs[1] == runs[2]
    assert len(runs[0]) == 6
    assert result["RailCap"][0]["edit"] > 0


def test_scaling_and_batch_benchmarks_run_in_the_default_dtype(shrunk):
    result = scaling.measure("llama-2-7b", "float32", "cpu", 3, plans=[(2, 3, 1), (2, 3, 2)])
    assert result[1]["prefix"] == 2 * result[0]["prefix"]
    result = batch.measure("llama-2-7b", "float32", "cpu", steps=2, rows=[1, 60])
    assert [row["rows"] for row in result] == [1, 60]
    assert all(row["seconds"] > 0 for row in result)
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize("setting", ["0", "1"])
def test_the_kernel_benchmark_switches_the_kernels(setting, shrunk, monkeypatch):
    for switch in kernels.SWITCHES:
        monkeypatch.setenv(switch, "")  # restored after the test
    num_calls, attend = [], cpu_kernels.attend
    monkeypatch.setattr(
        cpu_kernels, "attend", lambda *arguments: num_calls.append(0) or attend(*arguments)
    )
    result = kernels.measure("llama-2-7b", "bfloat16", steps=2, rows=[60], kernels=setting)
    assert result[0]["seconds"] > result[0]["drawing"] > 0
    assert bool(num_calls) == (setting == "1")


@pytest.mark.parametrize("way", ["flash", "kernel"])
def test_the_attention_benchmark_switches_the_way(way, monkeypatch):
    if way == "kernel":
        skip_without_dot_products()
    num_calls, by_kernel = [], cpu_kernels.part_attention
    has_kernel = cpu_kernels.has_products
    monkeypatch.setattr(cpu_kernels, "has_products", has_kernel)  # restored after it
    monkeypatch.setattr(
        cpu_kernels, "part_attention", lambda *args: num_calls.append(0) or by_kernel(*args)
    )
    assert attention.measure(way, shape=(2, 6, 9), calls=2) > 0
    assert len(num_calls) == (3 if way == "kernel" else 0)


@pytest.mark.parametrize("way", ["linear", "kernel"])
@pytest.mark.parametrize("label", ["down", products.GATE_AND_UP])
def test_the_product_benchmark_switches_the_way(way, label, monkeypatch):
    if way == "kernel":
        skip_without_dot_products()
    calls = []
    for name in ("product", "gated_product", "gated_silu"):
        function = getattr(cpu_kernels, name)
        monkeypatch.setattr(
            cpu_kernels, name, lambda *x, name=name, call=function: calls.append(name) or call(*x)
        )
    monkeypatch.setattr(products, "BYTES", 1)  # one copy of the weights
    assert products.measure(way, label, num_rows=3, passes=2) > 0
    is_gated = label != "down"
    used = ("gated_product" if is_gated else "product") if way == "kernel" else "gated_silu"
    assert calls == ([used] * 3 if is_gated or way == "kernel" else [])


def test_the_reproducibility_benchmark_compares_each_way_with_the_first_of_its_kind():
    import reproducibility

    results = reproducibility.measure("llama2", "float32", "cpu", questions=2, tokens=3)
    assert [result["responses"] for result in results] == [100] * 5
    assert results[0]["different"] == results[3]["different"] == 0
    assert results[4]["different"] == results[4]["different_counts"] == 0  # batch-invariant
