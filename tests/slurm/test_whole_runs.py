"""Runs by `snakemake --profile slurm`: every table, and the real tokenizers."""

from collections import Counter

import pytest
from transformers import AutoTokenizer

from helpers import published_models
from helpers.shared_data import TOKENIZERS
from helpers.slurm_run import Run, allocated, requests, rule
from zerogap.io import parquet
from zerogap.pipeline.rehearse import write_random_model
from zerogap.pipeline.report.tables import TABLES

TOKENIZER_MODELS = ("llama2", "smollm2", "pythia")


@pytest.fixture(scope="module")
def tables(cluster, tmp_path_factory) -> tuple[Run, list[dict[str, str]]]:
    """A run of every table, from one model in both benchmarks, and its jobs."""
    before = len(cluster.jobs())
    run = Run(cluster, tmp_path_factory.mktemp("tables"), "tables")
    run.finish(run.start("tables"))
    return run, cluster.jobs()[before:]


def test_every_table_is_made_with_every_strategy(tables):
    run, _ = tables
    for name in TABLES:
        for ending in ("csv", "md", "tex", "html"):
            assert (run.folder / f"reports/micro/tables/{name}.{ending}").stat().st_size > 100
    for benchmark in ("gsm8k", "pq"):
        path = run.folder / f"results/micro/llama2/{benchmark}/metrics.parquet"
        strategies = {"identity", "ted", "shortcut", "lne_blocking", "railcap", "all_zero"}
        assert strategies <= set(parquet.read(path, "metrics").strategy)


def test_only_the_heavy_rules_are_submitted_once_per_job(tables):
    """Data and tables are made where Snakemake runs."""
    _, jobs = tables
    assert Counter(map(rule, jobs)) == {
        "write_training_data": 3, "train_lora": 3, "merge_lora": 3, "decode_greedy": 3,
        "sample_responses": 2 + 2 * 4 + 1, "filter_responses": 2, "localise_neurons": 2,
        "rank_clean_tokens": 1, "measure_recovery": 1, "replay_rail": 2, "compute_metrics": 2,
        "compute_ablation_metrics": 1, "measure_overlap": 3,
    }  # fmt: skip
    assert {job["JobState"] for job in jobs} == {"COMPLETED"}


def test_every_job_gets_the_resources_that_its_rule_requests(tables):
    _, jobs = tables
    requested = requests()
    requested["compute_ablation_metrics"] = requested["compute_metrics"]  # inherited
    assert requested["sample_responses"][0] == 1
    assert requested["compute_metrics"][0] == 0
    assert {(rule(job), allocated(job)) for job in jobs} == {
        (name, requested[name]) for name in set(map(rule, jobs))
    }


@pytest.fixture(scope="module")
def random_models(cluster, tmp_path_factory) -> Run:
    """A run on random models, each with the real tokenizer of its kind."""
    for name in TOKENIZER_MODELS:
        folder = TOKENIZERS / published_models.CONFIGS[name][2][0]
        if not folder.is_dir():
            pytest.skip(f"tokenizer {folder.name} is not available; set ZEROGAP_TOKENIZERS")
    run = Run(cluster, tmp_path_factory.mktemp("real_tokenizers"), "real_tokenizers")
    for name in TOKENIZER_MODELS:
        published, base = run.folder / "published" / name, run.folder / "bases" / name
        published_models.write_folder(name, published)
        write_random_model(published, base, seed=0)
    return run


def test_every_real_tokenizer_gets_from_data_to_metrics(random_models, cluster):
    run, before = random_models, len(cluster.jobs())
    folders = {name: f"results/micro/{name}/gsm8k" for name in TOKENIZER_MODELS}
    run.finish(run.start(*(f"{folder}/metrics.parquet" for folder in folders.values())))
    jobs = cluster.jobs()[before:]
    assert {job["JobState"] for job in jobs} == {"COMPLETED"}
    assert Counter(map(rule, jobs)) == {
        "write_training_data": 6, "train_lora": 6, "merge_lora": 6, "decode_greedy": 6,
        "sample_responses": 3 * (2 + 2), "compute_metrics": 3,
    }  # fmt: skip
    for name in TOKENIZER_MODELS:
        folder = run.folder / folders[name]
        num_tokens = len(AutoTokenizer.from_pretrained(run.folder / "bases" / name))
        assert num_tokens >= 32_000
        assert len(AutoTokenizer.from_pretrained(folder / "model")) == num_tokens
        metrics = parquet.read(folder / "metrics.parquet", "metrics")
        sa_ppg = metrics[(metrics.metric == "sa_ppg") & (metrics.subset == "all")]
        assert {"identity", "railcap"} <= set(sa_ppg.strategy[sa_ppg.value.notna()])
        samples = parquet.read(folder / "cells/railcap/samples.parquet", "samples")
        assert max(map(max, samples.token_ids)) > num_tokens // 2
