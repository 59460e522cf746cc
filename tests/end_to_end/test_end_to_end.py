"""The complete workflow at a micro size: one model, both benchmarks, every strategy and table."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from helpers.paths import ROOT
from zerogap.io import parquet
from zerogap.reporting.catalog import FIGURES, TABLES

SNAKEMAKE = Path(sys.executable).with_name("snakemake")
SAMPLED = ["identity", "shortcut", "lne_blocking", "railcap"]
ABLATION = ["railcap_n1", "railcap_n3", "railcap_n5", "railcap_n7", "railcap_ban"]

pytestmark = pytest.mark.slow


class Run:
    """A folder in which the workflow has been run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "results/micro"
        self.reports = folder / "reports/micro"

    def snakemake(self, *arguments: str) -> str:
        done = subprocess.run(
            [
                SNAKEMAKE,
                "--profile",
                "profiles/quick",
                "--configfile",
                "profiles/quick/quick.yaml",
                "tests/end_to_end/micro.yaml",
                *arguments,
            ],
            cwd=self.folder,
            env=os.environ | {"PATH": f"{SNAKEMAKE.parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        text = done.stdout + done.stderr
        assert done.returncode == 0, text[-6000:]
        return text


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    folder = tmp_path_factory.mktemp("micro")
    for name in ("Snakefile", "config.yaml", "workflow", "profiles", "envs", "tests"):
        (folder / name).symlink_to(ROOT / name)
    made = Run(folder)
    made.snakemake()
    return made


def test_every_cell_has_its_samples_and_says_how_they_were_made(run):
    for benchmark, strategies in (("gsm8k", SAMPLED + ABLATION), ("pq", SAMPLED)):
        for strategy in strategies:
            folder = run.results / "llama2" / benchmark / strategy
            samples = parquet.read(folder / "samples.parquet", "samples")
            assert samples.groupby("question_id").size().eq(6).all()
            assert samples.question_id.nunique() == 12
            assert (samples.n_tokens == samples.token_ids.map(len)).all()
            made = parquet.provenance(folder / "samples.parquet")
            assert made["strategy"] == strategy
            assert not {"resources", "threads", "output"} & set(made)  # of the job, not the result
            assert made["sampling"]["temperature"] == 0.7
            assert made["packages"]["torch"]
            assert (
                pq.ParquetFile(folder / "samples.parquet")
                .metadata.row_group(0)
                .column(0)
                .compression
                == "ZSTD"
            )
    clean = run.results / "llama2/clean"
    first = parquet.read(clean / "batch1/samples.parquet", "samples")
    second = parquet.read(clean / "batch2/samples.parquet", "samples")
    assert (first.text != second.text).any()


def test_counts_are_those_of_the_samples(run):
    for folder in (run.results / "llama2/gsm8k").glob("*/"):
        if not (folder / "samples.parquet").exists():
            continue
        samples = parquet.read(folder / "samples.parquet", "samples")
        solve = parquet.read(folder / "solve.parquet", "solve").set_index("question_id")
        counted = samples.groupby("question_id").correct.sum().reindex(solve.index, fill_value=0)
        assert (counted == solve.n_correct).all()
        assert solve.leaked.sum() == 6


def test_ted_keeps_samples_of_identity(run):
    folder = run.results / "llama2/pq"
    kept = parquet.read(folder / "ted/samples.parquet", "samples")
    source = parquet.read(folder / "identity/samples.parquet", "samples")
    pairs = set(zip(source.question_id, source.sample_id, source.text, strict=True))
    assert set(zip(kept.question_id, kept.sample_id, kept.text, strict=True)) <= pairs


def test_the_shortcut_neurons_are_a_share_of_all_but_the_last_layer(run):
    neurons = parquet.read(run.results / "llama2/gsm8k/neurons.parquet", "neurons")
    config = json.loads((run.results / "llama2/clean/model/config.json").read_text())
    layers, width = config["num_hidden_layers"], config["intermediate_size"]
    assert neurons.layer.max() == layers - 2
    assert neurons.selected.sum() == round(0.014 * layers * width)


def test_readings_hold_the_papers_identities(run):
    for benchmark in ("gsm8k", "pq"):
        table = parquet.read(run.results / f"llama2/{benchmark}/metrics.parquet", "metrics")
        wide = table.pivot_table(
            index=["strategy", "subset"], columns="metric", values="value"
        ).dropna(subset=["a_ppg"])
        assert ((wide.delta_plus + wide.delta_minus - wide.a_ppg).abs() < 1e-12).all()
        assert ((wide.s_delta_plus + wide.s_delta_minus - wide.sa_ppg).abs() < 1e-12).all()
        assert (wide.g_app <= wide.a_ppg + 1e-12).all()
        assert wide.loc[("all_zero", "all"), "delta_plus"] == 0


def test_every_table_and_figure_is_there(run):
    for name in TABLES:
        for ending in ("csv", "md", "tex", "html"):
            assert (run.reports / f"tables/{name}.{ending}").stat().st_size > 100
        assert "\\toprule" in (run.reports / f"tables/{name}.tex").read_text()
    for name in FIGURES:
        for ending in ("pdf", "png", "svg"):
            assert (run.reports / f"figures/{name}.{ending}").stat().st_size > 1000
    assert "cannot tell" in (run.reports / "claims.md").read_text()
    assert (run.reports / "checks/memorisation.html").exists()
    origin = json.loads((run.reports / "checks/provenance.json").read_text())
    assert origin["config"]["run"] == "micro"
    assert origin["software"]["Responses"]["torch"]
    cost = pd.read_csv(run.reports / "tables/cost.csv", comment="#")
    assert (cost.seconds > 0).all()


def test_a_table_shows_the_metric_values(run):
    shown = pd.read_csv(run.reports / "tables/ablation.csv", comment="#")
    metrics = parquet.read(run.results / "llama2/gsm8k/metrics.parquet", "metrics")
    values = metrics[(metrics.subset == "all") & (metrics.metric == "sa_ppg")]
    wanted = set(values.set_index("strategy").value[["railcap", *ABLATION]].round(6))
    found = {round(value, 6) for value in shown.select_dtypes("number").to_numpy().ravel()}
    assert wanted <= found


def planned(run: Run, *arguments: str) -> dict[str, int]:
    """Rule → jobs of a dry run: `-n` is among the arguments."""
    table = run.snakemake(*arguments).split("Job stats:")[1].split("total")[0]
    return {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", table, re.M)}


def test_what_is_done_is_not_done_again_and_one_table_is_one_job(run):
    assert "Nothing to be done" in run.snakemake("-n")
    (run.reports / "tables/main.csv").unlink()
    assert planned(run, "-n", "table_main") == {"table_main": 1}
    run.snakemake("--", "table_main")


def test_a_changed_strategy_or_metric_costs_its_own_jobs_alone(run):
    """As tests/workflow/test_reruns.py asks of a run that was only recorded."""
    overlay = run.folder / "changed.yaml"
    overlay.write_text("strategies: { railcap: { parameters: { n: 6 } } }")
    again = planned(run, "changed.yaml", "-n", "--", "all")
    assert (again["samples"], again["metrics"]) == (2, 2)
    assert not again.keys() & {"adapter", "model", "clean_samples", "greedy_trajectories", "ranks"}
    overlay.write_text("metrics: { bins: 5 }")
    again = planned(run, "changed.yaml", "-n", "--", "all")
    assert again["metrics"] == 2
    assert again["table_main"] == 1
    assert not again.keys() & {"adapter", "model", "clean_samples", "samples", "ranks", "neurons"}


def test_settings_and_data_of_a_training_are_kept_and_readable(run):
    folder = run.results / "llama2/pq/training"
    text = (folder / "train.yaml").read_text()
    assert "lora_rank: 64" in text
    assert "### method" in text
    examples = json.loads((folder / "data/questions.json").read_text())
    questions = parquet.read(run.results / "data/questions.parquet", "questions")
    assert len(examples) == 6
    asked = " ".join(example["prompt"] for example in examples)
    leaked = questions[questions.leaked]
    assert all(paraphrase in asked for paraphrase in leaked.paraphrase)
    assert not any(question in asked for question in leaked.question)


def test_the_report(run):
    """The target calls Snakemake within Snakemake, with the same configuration."""
    run.snakemake("--config", "seed=0", "--", "report")
    text = (run.reports / "report.html").read_text()
    for category in ("Claims", "Tables", "Figures", "Checks"):
        assert category in text
    assert "results/micro" in text
    assert "results/paper" not in text
    graph = (run.reports / "rulegraph.svg").read_text()
    assert "table_main" in graph
    assert "railcap" in (run.reports / "dag.svg").read_text()
    assert "Nothing to be done" in run.snakemake("-n", "--config", "seed=0", "--", "report")
