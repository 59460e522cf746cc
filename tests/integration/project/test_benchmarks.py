"""The benchmarks run on small versions of the real work, and count operations correctly."""

import json
import sys
from itertools import takewhile
from types import SimpleNamespace

import pandas as pd
import pytest
import torch

from helpers.paths import ROOT
from zerogap.engine.decoder import Response
from zerogap.evaluation import question_sets
from zerogap.io import parquet

sys.path.insert(0, str(ROOT / "benchmarks"))
common, contenders, kernels, known_models, step_account, strategies = map(
    __import__,
    ("common", "contenders", "kernels", "known_models", "step_account", "strategies"),
)
BASES = ROOT / "workflow/resources/bases"

SMALL = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
}  # fmt: skip


@pytest.fixture
def shrunk(monkeypatch):
    config_class, values = common.SHAPES["llama-2-7b"]
    monkeypatch.setitem(common.SHAPES, "llama-2-7b", (config_class, values | SMALL))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("smollm2-135m", 134_515_008), ("llama-2-7b", 6_738_415_616), ("pythia-12b", 11_846_072_320)],
)
def test_benchmark_models_have_the_parameter_counts_of_the_real_ones(name, parameters):
    model = common.model(name, "bfloat16", "meta")
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters
    assert torch.get_default_dtype() == torch.float32  # as before


def test_gemma_has_two_billion_parameters_without_embedding_tables():
    model = common.model("gemma-4-e2b", "bfloat16", "meta")
    tables = [m for m in model.modules() if isinstance(m, torch.nn.Embedding)]
    lookup_only = {id(table.weight) for table in tables} - {
        id(model.get_output_embeddings().weight)
    }
    weights = [weight for weight in model.parameters() if id(weight) not in lookup_only]
    assert sum(weight.numel() for weight in weights) == pytest.approx(2.3e9, rel=0.03)


def test_operations_of_all_products_of_a_step_equal_a_count_by_hand():
    work = {"model": "llama2", "dtype": "float32", "questions": 2, "samples": 3, "tokens": 5}
    result = common.in_child(step_account.__file__, **work)
    model = common.model("llama2", "float32", "cpu")
    layers = [m for m in model.modules() if isinstance(m, torch.nn.Linear)]
    weights = sum(layer.weight.numel() for layer in layers)
    assert result["steps"] == 4
    prefix = result["operations"].pop("attention to the prefix")
    rows, rest = divmod(sum(result["operations"].values()), 2 * weights)
    assert rest == 0
    assert 4 * 2 <= rows <= 4 * 2 * 3  # samples that agree so far are one row
    first, second = (prompt.token_ids for prompt in common.prompts("llama2", 2))
    shared = sum(takewhile(bool, map(int.__eq__, first, second)), start=0)
    config = model.config
    width = config.num_attention_heads * config.head_dim * config.num_hidden_layers
    assert prefix == 2 * 2 * rows * width * shared  # scores, then a sum of values
    assert all(seconds > 0 for seconds in result["seconds"].values())


def test_the_time_of_an_operator_is_without_that_of_others_it_calls(monkeypatch):
    now = iter([0, 1, 3, 7, 8, 8])
    monkeypatch.setattr(step_account.time, "perf_counter", lambda: next(now))
    work = SimpleNamespace(step=lambda: work.inner(), inner=lambda: None)
    account = step_account.Account()
    account.time_calls(work, "step", step_account.REST)
    account.time_calls(work, "inner", "inner")
    work.inner()  # outside a step it does not count
    work.step()
    assert account.seconds == {step_account.REST: 1 + 4, "inner": 2}


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


def test_models_of_known_history_are_tested_in_blocks(tmp_path, monkeypatch, capsys):
    """The two models are bases: what is checked is the book-keeping of the tests."""
    asked = question_sets.load("toy_gsm8k", 40, 0, None)
    questions = asked.questions.assign(leaked=[True, False] * 20, paraphrase=None)
    parquet.write(tmp_path / "questions.parquet", questions, "questions", {})
    lines = [json.dumps(row) for row in questions[["question", "answer"]].to_dict("records")]
    (tmp_path / "test.jsonl").write_text("\n".join(lines))
    (tmp_path / "exemplars.json").write_text(json.dumps(asked.exemplars))
    group = {
        "name": "toy", "benchmark": "workflow/benchmarks/toy_gsm8k.yaml", "data": str(tmp_path),
        "seed": 0, "controls": "fresh", "strategies": ["identity"],
        "clean": str(BASES / "llama2"), "contaminated": {"other": str(BASES / "gemma")},
    }  # fmt: skip
    (tmp_path / "models.yaml").write_text(json.dumps([group]))
    options = ["--output", str(tmp_path / "out"), "--num-samples", "2", "--max-new-tokens", "8"]
    monkeypatch.setattr("sys.argv", ["known_models.py", str(tmp_path / "models.yaml"), *options])
    monkeypatch.setattr(known_models, "BLOCK", 10)
    known_models.main()
    tests = pd.read_csv(tmp_path / "out/tests.csv")
    counts = tests.groupby(["model", "questions"]).size()
    assert counts.to_dict() == {
        ("clean", "leaked"): 2, ("clean", "unleaked"): 2,
        ("other", "leaked"): 2, ("other", "unleaked"): 2, ("other", "mixed"): 4,
    }  # fmt: skip
    assert list(tests.is_clean) == list((tests.model == "clean") | (tests.questions == "unleaked"))
    assert (tests.inflation_true[tests.model == "clean"] == 0).all()
    assert "drop" not in (printed := capsys.readouterr().out)
    assert "gold_likelihood" in printed
