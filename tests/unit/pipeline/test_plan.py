"""`zerogap plan`: jobs × tokens ÷ rates."""

import csv
import io
import json
import math
import re
from pathlib import Path

import pytest
import yaml

from helpers.configurations import PAPER, QUICK
from helpers.paths import ROOT
from helpers.synthetic_run import write_timings
from zerogap.cli import main
from zerogap.config import load
from zerogap.errors import InputError
from zerogap.pipeline import jobs, targets
from zerogap.pipeline import plan as planning
from zerogap.pipeline.models import model_size
from zerogap.pipeline.plan import INSTRUCTION, QUESTION, RESPONSE, Rates
from zerogap.pipeline.preflight import OK, check_gpu_memory

pytestmark = pytest.mark.usefixtures("in_checkout")
ONE_MODEL = {"models": {"gemma": None, "pythia": None}}
NIGHT = 14  # hours


def sizes(config):
    return {model: model_size(config, model) for model in config.models}


def plan_of(config, rates=None):
    return planning.plan(config, sizes(config), rates or Rates())


def sums(plan, rule):
    rows = plan[plan.rule == rule]
    return {"jobs": len(rows), **rows[["tokens", "hours", "bytes"]].sum()}


def write_provenance(config):
    path = Path("reports", config.run, "checks/provenance.json")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"config": config.model_dump(mode="json", by_alias=True)}))
    return path


def command(capsys, *arguments):
    status = main(["plan", *map(str, arguments)])
    return status, *capsys.readouterr()


def test_shards_are_jobs_that_share_the_tokens_of_a_cell(paper):
    whole, sharded = (plan_of(config) for config in (paper(), paper(sampling__num_shards=8)))
    before, after = (sums(plan, "sample_responses") for plan in (whole, sharded))
    assert after.pop("jobs") == 8 * before.pop("jobs")
    assert after == pytest.approx(before)


def test_tokens_follow_from_the_protocol(paper):
    config = paper(**ONE_MODEL, neuron_localisation__num_shards=1)
    plan = plan_of(config)
    shots = config.benchmarks["gsm8k"].prompt.num_shots * (QUESTION + RESPONSE)
    examples = 660 * (shots + QUESTION + RESPONSE) + 1840 * INSTRUCTION
    assert sums(plan, "train_lora")["tokens"] == pytest.approx(3 * 5 * examples)
    # Two batches; four strategies in two settings, the ablation's seven in one; Shortcut runs two
    # models.
    cell = 1319 * 50 * RESPONSE
    assert sums(plan, "sample_responses")["tokens"] == pytest.approx((2 + 15 + 2) * cell)
    assert sums(plan, "decode_greedy")["tokens"] == 3 * 1319 * RESPONSE
    search, widths = config.neuron_localisation, sizes(config)["llama2"].widths
    passes = 1 + (len(widths) - 1) * math.ceil(widths[0] / search.group_size)
    tokens = 2 * 2 * passes * search.num_questions * RESPONSE  # two models in two settings
    assert sums(plan, "localise_neurons")["tokens"] == tokens


def test_rates_are_given_measured_or_assumed_in_this_order(paper):
    config = paper(**ONE_MODEL)
    parameters = sizes(config)["llama2"].parameters
    job, size = jobs.Job("train_lora", "llama2", "gsm8k"), sizes(config)["llama2"]
    assert Rates().of(job, "training", size) == (3000 * 7e9 / parameters, "assumed")
    for kind, factor in (("training", 3.17), ("sampling", 2.35)):  # operations, bandwidth
        a100, h200 = (Rates(gpu=gpu).of(job, kind, size)[0] for gpu in ("a100-80gb", "h200-141gb"))
        assert h200 == pytest.approx(factor * a100)
    measured = {("train_lora", "llama2"): 500.0}
    assert Rates(measured=measured).of(job, "training", size) == (500, "measured")
    given = {"training": 700.0, "llama2.training": 800.0, "gemma.training": 900.0}
    assert Rates(given, measured).of(job, "training", size) == (800, "given")


def test_a_finished_run_predicts_itself_and_a_longer_one(quick, tmp_path, monkeypatch):
    config = quick(models__gemma=None, models__pythia=None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "workflow").symlink_to(ROOT / "workflow")
    run = Path("results", config.run)
    run.mkdir(parents=True)
    with pytest.raises(InputError, match="is not a finished run"):
        planning.measured_rates(run, sizes(config))
    write_provenance(config)
    with pytest.raises(InputError, match="has no timings of llama2"):
        planning.measured_rates(run, sizes(config))
    write_timings(config, seconds=36)
    rates = Rates(measured=planning.measured_rates(run, sizes(config)))
    num_timed = len([1 for timed in targets.timed_jobs(config) for _ in timed.timings])
    assert plan_of(config, rates).hours.sum() == pytest.approx(num_timed * 36 / 3600)
    twice = 2 * config.sampling.num_samples
    longer = quick(models__gemma=None, models__pythia=None, sampling__num_samples=twice)
    hours = [sums(plan_of(c, rates), "sample_responses")["hours"] for c in (config, longer)]
    assert hours[1] == pytest.approx(2 * hours[0])


def test_a_training_on_several_gpus_takes_less_time_and_as_many_gpu_hours(paper):
    trainings = [plan_of(paper(training__num_gpus=number), Rates()) for number in (1, 4)]
    one, four = (each[each.rule == "train_lora"] for each in trainings)
    assert four.hours.tolist() == one.hours.tolist()
    assert four.wall_hours.tolist() == (one.hours / 4).tolist()


def test_the_time_of_a_preparation_is_measured_too(paper, tmp_path, monkeypatch):
    preparation = {"name": "warm", "benchmark": "gsm8k", "training": {"num_epochs": 1}}
    prepared = {"models__llama2__preparation": preparation, "benchmarks__gsm8k__num_preparation": 9}
    config = paper(**prepared)
    measured = {model: size for model, size in sizes(config).items() if model == "llama2"}
    monkeypatch.chdir(tmp_path)
    provenance = write_provenance(config)
    write_timings(config, seconds=36)
    run = Path("results", config.run)
    rates = planning.measured_rates(run, measured)
    provenance.write_text(json.dumps({"config": {}}))
    with pytest.raises(InputError, match="its configuration is not valid here"):
        planning.measured_rates(run, measured)
    assert rates["train_preparation", "llama2"] == pytest.approx(9 * (QUESTION + RESPONSE) / 36)


def test_every_format_shows_the_same_plan(capsys):
    _, out, _ = command(capsys, "--format", "json")
    rows = json.loads(out)["jobs"]
    assert len(rows) == len(jobs.costly_jobs(load(PAPER)))
    _, out, _ = command(capsys, "--format", "csv")
    table = list(csv.DictReader(io.StringIO(out)))
    total = next(row for row in table if row["jobs"] == str(len(rows)))
    hours = float(total["gpu_hours"])
    assert hours == pytest.approx(sum(row["hours"] for row in rows))
    status, out, err = command(capsys)
    assert (status, err) == (0, "")
    assert f"{hours:.2f}" in out


def test_models_too_small_to_scale_have_hours_only_with_a_rate(capsys):
    files = ["--config", *QUICK]
    assert "No hours where no rate is known" in command(capsys, *files)[1]
    rates = [f"{kind}=1000" for kind in planning.ASSUMED_RATES]
    _, out, _ = command(capsys, *files, "--rate", *rates, "--format", "json")
    rows = json.loads(out)["jobs"]
    tokens = sum(row["tokens"] for row in rows)
    assert sum(row["hours"] for row in rows) == pytest.approx(tokens / 1000 / 3600)


def test_a_job_longer_than_all_its_attempts_is_a_warning(tmp_path, capsys):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("max_runtime: 20")
    assert "Warning" not in command(capsys, "--rate", "sampling=1000")[1]
    slow = command(capsys, "--rate", "sampling=1000", "--config", *PAPER, overlay)[1]
    assert re.search(
        r"Warning: .*sample_responses \(at most 1 h\).* more time than 3 attempts", slow
    )
    profile = yaml.safe_load((ROOT / "profiles/slurm/config.yaml").read_text())
    assert profile["retries"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rate", "sampling=0"], "--rate sampling=0: must be a positive number"),
        (["--rate", "sampling=1_0"], "--rate sampling=1_0: must be a positive number"),
        (["--rate", "speed=3"], "--rate speed=3: the kind must be one of training, sampling"),
        (["--rate", "nobody.greedy=3"], "'nobody' is not a model of the configuration (llama2, "),
        (["--gpu", "tpu"], "--gpu must be one of a100-80gb, "),
        (["--from", "results/none"], "--from results/none: is not a finished run: "),
    ],
)
def test_a_mistake_in_a_call_of_plan_is_one_line(capsys, arguments, message):
    status, out, err = command(capsys, *arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_the_workstation_scale_fits_one_24_gb_gpu_in_a_night(monkeypatch):
    monkeypatch.setattr("huggingface_hub.HfApi", None)  # the hub cannot be asked
    workstation = load([*PAPER, ROOT / "profiles/workstation/workstation.yaml"])
    paper = load(PAPER)
    assert workstation.benchmarks["gsm8k"] == paper.benchmarks["gsm8k"]
    assert workstation.sampling == paper.sampling
    assert workstation.all_strategies == paper.all_strategies
    planned = plan_of(workstation, Rates(gpu="rtx-4090"))
    assert 1 < planned.hours.sum() < NIGHT
    results = check_gpu_memory(workstation, sizes(workstation), [23.5 * 2**30])
    assert [result.status for result in results] == [OK] * 3
