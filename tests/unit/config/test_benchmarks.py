"""Benchmarks as YAML files: overlays, several in one run, shared questions."""

from pathlib import Path

import pytest
import yaml

from helpers.configurations import PAPER, QUICK, overlaid
from helpers.paths import ROOT
from zerogap.config import load
from zerogap.pipeline import targets

TOY = yaml.safe_load((ROOT / "workflow/benchmarks/toy_gsm8k.yaml").read_text())
OTHER = TOY | {
    "label": "Other",
    "num_test": 20,
    "num_leaked": 10,
    "prompt": TOY["prompt"] | {"template": "Question: {question}\nAnswer:", "num_shots": 1},
    "extraction": "flexible-extract",
    "stop": ["Question:", "\n---"],
}


@pytest.fixture
def other(tmp_path):
    path = tmp_path / "other.yaml"
    path.write_text(yaml.safe_dump(OTHER))
    return str(path)


def test_a_benchmark_is_one_file_and_one_line(other):
    entry = {"file": other, "num_leaked": 3, "prompt": {"num_shots": 2}}  # keys override the file's
    config = overlaid(QUICK, {"benchmarks.other": entry})
    assert list(config.benchmarks) == ["gsm8k", "pq", "other"]
    benchmark = config.benchmarks["other"]
    assert (benchmark.num_leaked, benchmark.prompt.num_shots, benchmark.num_test) == (3, 2, 20)
    assert benchmark.prompt.template == "Question: {question}\nAnswer:"
    assert benchmark.stop == ("Question:", "\n---")
    assert benchmark.extraction == "flexible-extract"
    assert config.benchmarks["gsm8k"] == load(QUICK).benchmarks["gsm8k"]


def test_a_benchmark_may_state_its_own_exemplars_or_name_a_file_of_them(other):
    exemplars = [{"question": "How many is 1 + 1?", "target": "It is 2. So 2."}]
    entry = {"file": other, "prompt": {"exemplars": exemplars}}
    prompt = overlaid(QUICK, {"benchmarks.other": entry}).benchmarks["other"].prompt
    assert prompt.model_dump()["exemplars"] == tuple(exemplars)
    entry["prompt"] = {"exemplars": "mine.jsonl"}
    config = overlaid(QUICK, {"benchmarks.other": entry})
    files = {name: targets.local_files(config.benchmarks[name].prompt) for name in ("other", "pq")}
    assert files == {"other": ["mine.jsonl"], "pq": []}


def test_a_file_is_relative_to_the_working_directory_or_the_project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load(PAPER).benchmarks["gsm8k"].label == "GSM8K"
    Path("mine.yaml").write_text(yaml.safe_dump(OTHER))
    config = overlaid(QUICK, {"benchmarks.mine.file": "mine.yaml"})
    assert config.benchmarks["mine"].label == "Other"


def test_questions_of_shares_everything_but_label_and_contamination():
    for base in (PAPER, QUICK):
        benchmarks = load(base).benchmarks
        shared = {"label", "contamination", "questions_of", "paraphrases"}
        assert benchmarks["pq"].model_dump(exclude=shared) == benchmarks["gsm8k"].model_dump(
            exclude=shared
        )
    config = overlaid(QUICK, {"benchmarks.gsm8k.num_leaked": 7, "benchmarks.gsm8k.stop": ["\n"]})
    assert (config.benchmarks["pq"].num_leaked, config.benchmarks["pq"].stop) == (7, ("\n",))


def test_shipped_benchmark_files_are_all_used_by_a_scale():
    files = {path.name for path in (ROOT / "workflow/benchmarks").glob("*.yaml")}
    scales = [ROOT / "config.yaml", *(ROOT / "profiles").glob("*/*.yaml")]
    text = "".join(path.read_text() for path in scales)
    assert {name for name in files if f"workflow/benchmarks/{name}" in text} == files
