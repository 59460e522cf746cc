"""Jobs that decode with vLLM, with a module in its place: part files, resuming, shards."""

import re
import sys

import pandas as pd
import pytest

from helpers.dry_runs import snakemake
from helpers.fake_vllm import FakeVllm
from helpers.job_inputs import BENCHMARK, SAMPLING, write_inputs
from helpers.tiny_models import model
from zerogap.io import parquet
from zerogap.sampling import cell, jobs
from zerogap.sampling.diagnostics import step_entropies

QUESTIONS = 6
STRATEGIES = ("identity", "railcap")
PARAMETERS = {
    "sampling": SAMPLING | {"max_new_tokens": 5, "batch_size": "auto"},
    "benchmark": BENCHMARK | {"stop": ["Q:"]},
    "metadata": {},
    "engine": "vllm",
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return write_inputs(tmp_path_factory.mktemp("inputs"), QUESTIONS)


@pytest.fixture
def vllm(monkeypatch):
    module = FakeVllm()
    monkeypatch.setitem(sys.modules, "vllm", module)
    monkeypatch.setattr(cell, "SAMPLES_PER_CHUNK", 2 * SAMPLING["num_samples"])
    return module


@pytest.fixture
def greedy(inputs, vllm, tmp_path):
    path = tmp_path / "greedy.parquet"
    jobs.decode_greedy(**inputs, output=path, **PARAMETERS)
    vllm.requests.clear()
    return path


def sample(inputs, greedy, folder, strategy="railcap", **options):
    folder.mkdir(exist_ok=True)
    jobs.sample_cell(
        **inputs, greedy=greedy, samples=folder / "samples.parquet",
        solve=folder / "solve.parquet", strategy={"class": strategy}, seed=5, stream="strategies",
        **PARAMETERS, **options,
    )  # fmt: skip
    return parquet.read(folder / "samples.parquet", "samples")


def test_the_greedy_table_has_the_entropies_of_our_engines_model(inputs, vllm, tmp_path):
    jobs.decode_greedy(**inputs, output=tmp_path / "greedy.parquet", **PARAMETERS)
    assert [(params.temperature, params.n) for _, params in vllm.requests] == [(0, 1)] * QUESTIONS
    table = parquet.read(tmp_path / "greedy.parquet", "greedy")
    read = jobs.JobInputs.read(
        **inputs, sampling=PARAMETERS["sampling"], benchmark=PARAMETERS["benchmark"]
    )
    net = model("llama").float()
    for prompt, row in zip(read.prompts, table.itertuples(), strict=True):
        tokens = list(map(int, row.token_ids))
        expected = step_entropies(net, prompt.token_ids, tokens)
        assert list(row.entropy) == pytest.approx(expected, rel=1e-4)
    assert not vllm.is_running


def test_the_tables_are_those_of_every_engine(inputs, greedy, tmp_path):
    table = sample(inputs, greedy, tmp_path / "cell")
    assert list(table.sample_id) == list(range(4)) * QUESTIONS
    assert set(table.finish_reason) == {"eos", "stop", "length"}
    counts = parquet.read(tmp_path / "cell/solve.parquet", "solve")
    assert list(counts.n_samples) == [4] * QUESTIONS
    assert parquet.provenance(tmp_path / "cell/samples.parquet")["engine"] == "vllm 0.32.0"


def test_an_interrupted_job_asks_vllm_for_the_unfinished_questions_only(
    inputs, greedy, vllm, tmp_path
):
    undisturbed = sample(inputs, greedy, tmp_path / "undisturbed")
    vllm.requests.clear()
    vllm.fails_at = vllm.num_calls + 2
    with pytest.raises(KeyboardInterrupt):
        sample(inputs, greedy, tmp_path / "cell")
    assert not vllm.is_running
    assert len(vllm.requests) == 2
    pd.testing.assert_frame_equal(sample(inputs, greedy, tmp_path / "cell"), undisturbed)
    assert len(vllm.requests) == QUESTIONS


@pytest.mark.parametrize(
    ("version", "engine", "settings"),
    [("0.33.0", "vllm", "engine"), ("0.32.0", "zerogap", "engine, precision")],
)
def test_another_engine_or_version_starts_over(
    inputs, greedy, vllm, tmp_path, monkeypatch, capsys, version, engine, settings
):
    vllm.fails_at = vllm.num_calls + 2
    with pytest.raises(KeyboardInterrupt):
        sample(inputs, greedy, tmp_path / "cell")
    vllm.version = version
    monkeypatch.setitem(PARAMETERS, "engine", engine)
    sample(inputs, greedy, tmp_path / "cell")
    message = f"settings changed since the last run ({settings}); starting over"
    assert message in capsys.readouterr().err


def test_the_strategies_of_a_run_have_the_same_seeds(inputs, greedy, vllm, tmp_path):
    for strategy in ("identity", "railcap", "lne_blocking"):
        sample(inputs, greedy, tmp_path / strategy, strategy)
    seeds = [params.seed for _, params in vllm.requests]
    assert seeds == seeds[:QUESTIONS] * 3
    assert len(set(seeds)) == QUESTIONS
    keys = [params.extra_args and list(params.extra_args) for _, params in vllm.requests]
    expected = [None, ["railcap"], ["lne_blocking"]]
    assert keys == [key for key in expected for _ in range(QUESTIONS)]


def test_rules_that_decode_with_vllm_run_in_its_environment():
    process = snakemake(
        *("-n", "--printshellcmds", "--cores", "1", "--configfile", "profiles/quick/quick.yaml"),
        *("--config", "decoding={engine: vllm}", "strategies={shortcut: null}"),
        *("run=dry_run", "--"),
        *(f"results/dry_run/llama2/gsm8k/cells/{name}/samples.parquet" for name in STRATEGIES),
    )
    commands = process.stdout + process.stderr
    found = re.findall(r"Shell command: (.*python) workflow/scripts/(\w+)\.py", commands)
    in_environment = {rule for python, rule in found if python.startswith('PATH="${VLLM_PATH-}')}
    plain = {rule for python, rule in found if python == "python"}
    assert in_environment == {"decode_greedy", "sample_responses"}
    assert "train_lora" in plain
    assert not plain & in_environment
