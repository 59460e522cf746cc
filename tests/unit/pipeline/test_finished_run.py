"""Rates measured in a finished run: made-up timings and files of the quick scale."""

import csv
import io
import json
import os
import time
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers.configurations import QUICK
from helpers.paths import ROOT
from zerogap.cli import main
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.pipeline import finished_run, planning
from zerogap.pipeline.jobs import Job
from zerogap.pipeline.model_sizes import model_size
from zerogap.pipeline.rates import Rates

pytestmark = pytest.mark.usefixtures("in_checkout")
LLAMA2 = {"models__gemma": None, "models__pythia": None}
TOKENS_PER_RESPONSE = 40
NUM_QUESTIONS = 80  # of the quick scale


class Run:
    """A finished run of the quick scale with Llama 2 only, in a folder."""

    def __init__(self, config, folder: Path):
        self.config, self.folder = config, folder
        self.sizes = {model: model_size(config, model) for model in config.models}
        self.texts = planning.texts_by_owner(config, self.sizes, 3.0)
        model = folder / "llama2/clean_gsm8k/model"
        model.parent.mkdir(parents=True)
        model.symlink_to(ROOT / "workflow/resources/bases/llama2")

    def add_timing(self, variant, name, seconds, age=0):
        path = self.folder / f"timings/llama2/{variant}/{name}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"s\th:m:s\tmax_rss\n{seconds}\t0:00:01\t1.0\n")
        os.utime(path, (time.time() - age,) * 2)

    def add_responses(self, path, num_questions, num_samples=1):
        rows = num_questions * num_samples
        table = pa.table(
            {
                "question_id": [f"q{row % num_questions}" for row in range(rows)],
                "token_ids": [[1] * TOKENS_PER_RESPONSE] * rows,
            }
        )
        path = self.folder / "llama2" / path
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path)

    def add_greedy(self, variant, num_questions, seconds):
        self.add_responses(f"{variant}/greedy.parquet", num_questions)
        self.add_timing(variant, "decode_greedy", seconds)

    def add_cell(self, variant, cell, num_questions, seconds):
        self.add_responses(f"{variant}/cells/{cell}/samples.parquet", num_questions, num_samples=5)
        self.add_timing(variant, f"cells/{cell}", seconds)

    def add_training(self, variant, characters, epochs, seconds):
        folder = self.folder / f"llama2/{variant}/training"
        (folder / "data").mkdir(parents=True)
        (folder / "adapter").mkdir()
        examples = [{"prompt": "x" * (characters - 3), "response": "abc"}]
        (folder / "data/questions.json").write_text(json.dumps(examples))
        (folder / "data/dataset_info.json").write_text('{"questions": {"file_name": "x"}}')
        (folder / "adapter/all_results.json").write_text(json.dumps({"epoch": epochs}))
        self.add_timing(variant, "train_lora", seconds)

    def measured(self):
        return finished_run.measured_jobs(self.config, self.folder, self.sizes, self.texts)

    def plan(self):
        rates = Rates(speeds=finished_run.speeds(self.measured()))
        return planning.plan(self.config, self.sizes, self.texts, rates).set_index("stage")


@pytest.fixture
def run(quick, tmp_path):
    return Run(quick(**LLAMA2), tmp_path)


def test_training_tokens_are_those_of_the_examples_in_all_epochs(run):
    run.add_training("clean_gsm8k", characters=2500, epochs=3.0, seconds=10)
    (job,) = run.measured()
    tokens_per_character = 1 / run.texts["llama2", "gsm8k"].characters_per_token
    plan = run.plan().loc["LoRA training"]
    assert job.job == Job("train_lora", "llama2", "clean_gsm8k")
    assert plan.rate == "measured"
    measured_rate = 2500 * 3 * tokens_per_character / 10
    assert plan.tokens / plan.hours / 3600 == pytest.approx(measured_rate)


def test_a_plan_of_the_same_work_takes_what_was_measured(run):
    text = run.texts["llama2", "gsm8k"]
    run.add_greedy("clean_gsm8k", num_questions=NUM_QUESTIONS, seconds=7)
    speed = finished_run.speeds(run.measured())["Greedy trajectories", "llama2"]
    work = planning.greedy_work(NUM_QUESTIONS, NUM_QUESTIONS * TOKENS_PER_RESPONSE, text)
    rates = Rates(speeds={("Greedy trajectories", "llama2"): speed})
    size = run.sizes["llama2"]
    assert rates.seconds(work, "Greedy trajectories", "llama2", size) == pytest.approx(7)


def test_forced_responses_are_timed_by_their_tokens(run):
    rows = {"question_id": ["a"] * 20, "sample_id": range(20), "step": 0, "kind": "word"}
    table = pd.DataFrame(rows | {"token_ids": [[1] * 40] * 20, "text": "", "correct": False})
    parquet.write(run.folder / "llama2/clean_gsm8k/recovery.parquet", table, "recovery", {})
    run.add_timing("clean_gsm8k", "measure_recovery", 5)
    (job,) = run.measured()
    text = run.texts["llama2", "gsm8k"]
    work = planning.recovery_work(20, 800, text)
    nominal = Rates().nominal_seconds(work, "llama2", run.sizes["llama2"])
    assert (job.stage, job.seconds, job.nominal_seconds) == ("Recovery", 5, pytest.approx(nominal))


def test_a_pilot_with_fewer_questions_gives_the_rates_of_the_whole(run):
    run.add_cell("gsm8k", "identity", num_questions=10, seconds=20)
    small = finished_run.speeds(run.measured())["Strategy samples", "llama2"]
    run.add_cell("gsm8k", "identity", num_questions=NUM_QUESTIONS, seconds=2 * NUM_QUESTIONS)
    large = finished_run.speeds(run.measured())["Strategy samples", "llama2"]
    assert small == pytest.approx(large, rel=0.2)  # the exemplars are read once in each


def test_shards_add_up_and_both_sampling_stages_share_a_rate_if_one_was_not_run(run):
    run.add_cell("gsm8k", "identity", NUM_QUESTIONS, seconds=10)
    whole = finished_run.speeds(run.measured())
    (run.folder / "timings/llama2/gsm8k/cells/identity.tsv").unlink()
    for shard, seconds in enumerate((4, 6)):
        run.add_timing("gsm8k", f"cells/identity.shard-{shard}-of-2", seconds)
    assert finished_run.speeds(run.measured()) == whole
    assert whole["Clean samples", "llama2"] == whole["Strategy samples", "llama2"]
    assert ("Neuron localisation", "llama2") not in whole


@pytest.mark.parametrize(
    "names",
    [["cells/identity"], ["cells/identity.shard-0-of-2", "cells/identity.shard-1-of-2"]],
)
def test_timings_of_an_earlier_number_of_shards_do_not_count(run, names):
    run.add_cell("gsm8k", "identity", NUM_QUESTIONS, seconds=10)
    whole = finished_run.speeds(run.measured())
    for earlier in run.folder.glob("timings/llama2/gsm8k/cells/identity*.tsv"):
        earlier.unlink()
    for shard in range(3):
        run.add_timing("gsm8k", f"cells/identity.shard-{shard}-of-3", 7, age=60)
    for name in names:
        run.add_timing("gsm8k", name, 10 / len(names))
    assert finished_run.speeds(run.measured()) == whole


def test_the_search_of_the_run_may_have_other_settings(run):
    run.add_greedy("gsm8k", NUM_QUESTIONS, seconds=5)
    run.add_timing("gsm8k", "localise_neurons", 30)
    table = pa.table({"layer": [0], "neuron": [0]})
    settings = {"neuron_localisation": {"group_size": 64, "num_questions": 8, "fraction": 0.1}}
    schema = {b"zerogap": json.dumps(settings).encode()}
    pq.write_table(
        table.replace_schema_metadata(schema), run.folder / "llama2/gsm8k/neurons.parquet"
    )
    (run.folder / "data/gsm8k").mkdir(parents=True)
    leaked = pa.table({"leaked": [True] * (NUM_QUESTIONS // 2) + [False] * (NUM_QUESTIONS // 2)})
    pq.write_table(leaked, run.folder / "data/gsm8k/questions.parquet")
    jobs = {job.job.rule: job for job in run.measured()}
    nominal = jobs["localise_neurons"].nominal_seconds
    settings["neuron_localisation"]["group_size"] = 32
    schema = {b"zerogap": json.dumps(settings).encode()}
    pq.write_table(
        table.replace_schema_metadata(schema), run.folder / "llama2/gsm8k/neurons.parquet"
    )
    jobs = {job.job.rule: job for job in run.measured()}
    assert jobs["localise_neurons"].nominal_seconds == pytest.approx(2 * nominal, rel=0.1)


def test_a_model_of_another_size_under_the_same_name_is_not_used(run, paper):
    run.add_greedy("clean_gsm8k", NUM_QUESTIONS, seconds=7)
    config = paper(**LLAMA2)
    sizes = {"llama2": model_size(config, "llama2")}
    texts = planning.texts_by_owner(config, sizes, 3.0)
    with pytest.raises(InputError, match=r"has no timings of a model .*finished run"):
        finished_run.measured_jobs(config, run.folder, sizes, texts)


def test_no_job_predicts_itself(run):
    for variant, seconds in (("clean_gsm8k", 10), ("gsm8k", 20), ("pq", 30)):
        run.add_greedy(variant, NUM_QUESTIONS, seconds)
    table = finished_run.comparison(run.config, run.measured(), run.sizes, run.texts)
    assert list(table.measured) == [10, 20, 30]
    text = run.texts["llama2", "gsm8k"]
    planned = planning.greedy_work(NUM_QUESTIONS, NUM_QUESTIONS * text.response, text)
    actual = planning.greedy_work(NUM_QUESTIONS, NUM_QUESTIONS * TOKENS_PER_RESPONSE, text)
    size = run.sizes["llama2"]
    longer = [Rates().nominal_seconds(work, "llama2", size) for work in (planned, actual)]
    factor = longer[0] / longer[1]
    assert list(table.predicted) == pytest.approx([25 * factor, 20 * factor, 15 * factor])


def test_a_stage_of_a_single_trained_model_is_not_predicted(run):
    run.add_greedy("gsm8k", NUM_QUESTIONS, 5)
    table = finished_run.comparison(run.config, run.measured(), run.sizes, run.texts)
    assert pd.isna(table.predicted).all()


def test_a_job_without_its_files_is_left_out(run):
    run.add_greedy("gsm8k", NUM_QUESTIONS, 5)
    run.add_timing("pq", "decode_greedy", 5)  # its responses were deleted
    assert [job.job.variant for job in run.measured()] == ["gsm8k"]


def test_a_job_with_a_damaged_file_is_left_out(run):
    run.add_greedy("gsm8k", NUM_QUESTIONS, 5)
    run.add_greedy("pq", NUM_QUESTIONS, 5)
    path = run.folder / "llama2/pq/greedy.parquet"
    path.write_bytes(path.read_bytes()[:50])
    assert [job.job.variant for job in run.measured()] == ["gsm8k"]


def test_the_command_takes_rates_from_a_run_and_compares_itself_with_it(run, tmp_path, capsys):
    for variant, seconds in (("clean_gsm8k", 10), ("gsm8k", 20), ("pq", 30)):
        run.add_greedy(variant, NUM_QUESTIONS, seconds)
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("models: { gemma: null, pythia: null }")
    arguments = ["plan", "--config", *map(str, QUICK), str(overlay), "--from", str(run.folder)]
    assert main([*arguments, "--format", "csv"]) == 0
    rows = {row["stage"]: row for row in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    assert rows["Greedy trajectories"]["rate"] == "measured"
    assert rows["LoRA training"]["rate"] == ""
    assert main([*arguments, "--compare", "--format", "csv"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["stage"], row["jobs"], float(row["measured"])) == ("Greedy trajectories", "3", 60)
    assert float(row["ratio"]) == pytest.approx(1, abs=0.2)
