"""The benchmarks of the workflow and of scoring run on small sizes."""

import json
import sys

from helpers.paths import ROOT
from zerogap import config
from zerogap.io import parquet

sys.path.insert(0, str(ROOT / "benchmarks"))
cell_costs, dag_size, metric_scaling, score_files = map(
    __import__, ("cell_costs", "dag_size", "metric_scaling", "score_files")
)


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


def test_files_of_every_kind_are_scored():
    for kind in score_files.KINDS:
        assert score_files.measure(kind, files=2, questions=8, samples=3)["seconds"] > 0


def test_metrics_are_timed_once_per_plan():
    assert len(metric_scaling.measure([(20, 5, 2), (20, 5, 3)])) == 2


def test_every_stage_of_a_large_run_is_timed():
    stages = cell_costs.measure(questions=8, samples=3)
    assert sum(number for _, number in stages.values()) == 300 + 2 * 100 + 2 * 1000
    assert all(seconds > 0 for seconds, _ in stages.values())


def test_simulated_samples_give_their_answer_in_the_text(tmp_path):
    table = cell_costs.samples_table(questions=8, samples=3)
    parquet.write(tmp_path / "samples.parquet", table, "samples", {})
    assert (table["correct"] == (table["answer"] == table["gold"])).all()
