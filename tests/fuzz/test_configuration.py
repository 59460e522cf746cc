"""Wrong configurations: one error each, before anything starts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from helpers.configurations import QUICK, nested
from helpers.dry_runs import link_checkout, snakemake
from helpers.fuzzing import outcome_of_call, outcome_of_process
from helpers.paths import ROOT
from zerogap.config import load
from zerogap.pipeline.preflight import run_checks

NAN, INFINITE = float("nan"), float("inf")
COUNT = [0, -1, 2.5, "many", 10**30, NAN, INFINITE, True, [1], {"a": 1}]
RATE = [0, -0.5, NAN, INFINITE, "fast", True, [0.1]]
FRACTION = [-0.1, 1.5, NAN, "half", [0.5]]
NAMES = ["a b", "a/b", "../up", "f\n", "", "a;b", "a'b", "ü", "a.b", "-a b", "$(id)"]

# Key → values that it must not have.
WRONG: dict[str, list[Any]] = {
    "run": [*NAMES, 5, None, "bases"],
    "seed": [-1, 2**70, 0.5, "one", NAN],
    "offline": ["yes", 1, None],
    "max_runtime": COUNT,
    "sampling.num_samples": COUNT,
    "sampling.max_new_tokens": [*COUNT, 100_000],
    "sampling.temperature": RATE,
    "sampling.top_p": [0, 1.5, NAN, "all"],
    "sampling.dtype": ["int8", "bf16", 16],
    "sampling.batch_size": [0, -1, "all", 2.5],
    "sampling.num_shards": [0, "two", 10**30],
    "metrics.bins": COUNT,
    "metrics.n_resamples": [0, 50, 10**30, NAN],
    "metrics.confidence_level": [0, 1, 1.5, NAN, "high"],
    "training.clean.learning_rate": RATE,
    "training.contaminated.num_epochs": RATE,
    "training.warmup_ratio": FRACTION,
    "training.lr_scheduler": ["cosin", "", 5],
    "training.template": ["nope", "fewshot"],
    "training.lora.rank": [0, -1, 10**30],
    "training.lora.dropout": [-0.1, 1, NAN],
    "training.cutoff_len": [0, 10**30],
    "training.device": ["gpu", "cuda:0"],
    "training.save_steps": [0, "hour"],
    "training.clean.global_batch_size": [0, 7],
    "neuron_localisation.fraction": [0, 1.5, NAN],
    "neuron_localisation.group_size": [0, 10**30],
    "models.llama2.family": ["gpt_neox", "gemma4", "bert", "LLAMA", ""],
    "models.llama2.base": ["no/such/folder", "", 5, "workflow/resources"],
    "models.llama2.label": ["", "  ", "Pythia, toy", 5],
    "models.data": [{"label": "D", "base": "workflow/resources/bases/llama2"}],
    "models.a b": [{"label": "D", "base": "workflow/resources/bases/llama2"}],
    "benchmarks.base": [{"file": "workflow/benchmarks/toy_gsm8k.yaml", "label": "B"}],
    "benchmarks.clean_mine": [{"file": "workflow/benchmarks/toy_gsm8k.yaml", "label": "B"}],
    "benchmarks.gsm8k.file": ["none.yaml", 5, "Makefile"],
    "benchmarks.gsm8k.num_test": [0, 1, 101, 10**30],
    "benchmarks.gsm8k.num_leaked": [0, 100, 10**30],
    "benchmarks.gsm8k.stop": ["Q:", [""], [5]],
    "benchmarks.gsm8k.extraction": ["", "best", "math:nothing", "no.such:rule"],
    "benchmarks.gsm8k.prompt.template": ["Q:", "{answer}", "{question", 5],
    "benchmarks.gsm8k.prompt.num_shots": [0, 99, 10**30],
    "benchmarks.gsm8k.label": ["", "Paraphrased problems"],
    "instructions.num_examples": [0, "all", 10**30],
    "primary_setting.model": ["nobody", 5, "", None],
    "strategies.identity": [None],
    "strategies.identity.class": ["os:getcwd", "railcup", "Identity", "math:pi", "no.such:S", ":"],
    "strategies.railcap.label": ["", "Identity"],
    "strategies.railcap.parameters.n": [0, -1, 2.5, "4", True, None, [4], NAN],
    "strategies.railcap.parameters.ngram": [4],
    "strategies.railcap.parameters.suppression": ["stop", None],
    "strategies.ted.parameters.tau": [-1, 2.5, "2"],
    "strategies.ted.parameters.max_length": [0, NAN],
    "strategies.lne_blocking.parameters.threshold": [-1, 2.5, "7"],
    "strategies.lne_blocking.parameters.beta": [0, -2, NAN, INFINITE],
    "strategies.lne_blocking.parameters.rounding": ["up", 1],
    "strategies.shortcut.parameters.n": [4],
    "strategies.ted.filter_of": ["ted", "nobody", 5],
    **{
        f"strategies.{name}": [{"label": "Mine", "class": "identity"}]
        for name in ("clean", "all_zero", "a b", "a/b", "x;y")
    },
    "ablation.identity": [{"label": "Mine", "class": "identity"}],
    "sampling.temprature": [0.7],
    "sampling": [5, [], "fast"],
}


@pytest.fixture
def start(tmp_path, monkeypatch) -> Callable[[dict[str, Any]], object]:
    """What happens with an overlay before the first job starts."""
    monkeypatch.chdir(ROOT)

    def run(values: dict[str, Any]) -> object:
        return run_checks(load([*QUICK, write_overlay(tmp_path, values)]))

    return run


def write_overlay(folder: Path, values: dict[str, Any]) -> Path:
    path = folder / "overlay.yaml"
    path.write_text(yaml.safe_dump(nested({"run": "fuzz", **values})))
    return path


def test_the_configuration_that_the_cases_change_is_accepted(start) -> None:
    assert start({})


def test_every_wrong_configuration_is_a_clear_error(start, judge) -> None:
    outcomes = {
        f"{key}: {value!r}": outcome_of_call(lambda: start({key: value}))  # noqa: B023
        for key, values in WRONG.items()
        for value in values
    }
    assert len(outcomes) >= 150
    judge("configuration", outcomes)


IN_SNAKEMAKE = {
    "a parameter of another name": {"strategies.railcap.parameters.ngram": 4},
    "a function as a class": {"strategies.identity.class": "os:getcwd"},
    "another family": {"models.llama2.family": "gpt_neox"},
    "a misspelt schedule": {"training.lr_scheduler": "cosin"},
    "a name with a line break": {"run": "f\n"},
    "more tokens than the context": {"sampling.max_new_tokens": 100_000},
}


def test_snakemake_stops_before_its_first_job(tmp_path, judge) -> None:
    outcomes = {}
    for name, values in IN_SNAKEMAKE.items():
        folder = link_checkout(tmp_path / name)
        write_overlay(folder, values)
        process = snakemake(
            *("-F", "--profile", "profiles/quick", "--configfile", "profiles/quick/quick.yaml"),
            *("overlay.yaml", "--", "results/fuzz/data/gsm8k/split.parquet"),
            workdir=folder,
        )
        outcomes[name] = outcome_of_process(process.returncode, process.stdout + process.stderr)
        assert not list(folder.glob("results/*/data"))
    judge("configuration, snakemake", outcomes)
