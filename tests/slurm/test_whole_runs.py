"""A run by `snakemake --profile slurm` of every table."""

from collections import Counter

import pytest

from helpers.slurm_run import Run, allocated, requests, rule


@pytest.fixture(scope="module")
def tables(cluster, tmp_path_factory) -> tuple[Run, list[dict[str, str]]]:
    """A run of every table, from one model in both benchmarks, and its jobs."""
    before = len(cluster.jobs())
    run = Run(cluster, tmp_path_factory.mktemp("tables"), "tables")
    run.finish(run.start("tables"))
    return run, cluster.jobs()[before:]


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
