"""`zerogap plan`."""

import csv
import io
import json

import pytest
import yaml

from helpers.configurations import PAPER, QUICK
from helpers.paths import ROOT
from zerogap.cli import main
from zerogap.config import load
from zerogap.pipeline import jobs
from zerogap.pipeline.plan_table import SLURM_RETRIES
from zerogap.pipeline.rates import DEFAULT_RATES

pytestmark = pytest.mark.usefixtures("in_checkout")


def plan(capsys, *arguments):
    status = main(["plan", *map(str, arguments)])
    return status, *capsys.readouterr()


def test_an_invalid_configuration_is_reported_in_one_line(tmp_path, capsys):
    path = tmp_path / "overlay.yaml"
    path.write_text("nonsense: 1")
    status, out, err = plan(capsys, "--config", *PAPER, path)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"error: {path}: nonsense: unknown key")


def test_every_format_shows_the_same_plan(capsys):
    _, out, _ = plan(capsys, "--format", "json")
    stages = json.loads(out)["stages"]
    total = sum(row["jobs"] for row in stages)
    _, out, _ = plan(capsys, "--format", "csv")
    rows = {row["stage"]: row for row in csv.DictReader(io.StringIO(out))}
    assert int(rows["Total"]["jobs"]) == total == len(jobs.all_jobs(load(PAPER)))
    hours = float(rows["Total"]["gpu_hours"])
    assert hours == pytest.approx(sum(row["hours"] for row in stages))
    by_stage = [float(r["gpu_hours"] or 0) for r in rows.values() if r["setting"] == "By stage"]
    assert sum(by_stage) == pytest.approx(hours)
    for form in ("table", "md"):
        status, out, err = plan(capsys, "--format", form)
        assert (status, err) == (0, "")
        assert f"{hours:.2f}" in out
        assert f"{total}" in out
        assert "Llama2 (6.7B): training 3,116" in out


def test_a_job_longer_than_all_its_attempts_is_a_warning(tmp_path, capsys):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("max_runtime: 20")
    slow = [*("--sampling", "1000"), *("--config", *PAPER)]
    assert "Warning" not in plan(capsys, "--sampling", "4000", "--config", *PAPER)[1]
    out = " ".join(plan(capsys, *slow, overlay)[1].split())
    assert "Warning: longer than 3 attempts of 0.333 h (max_runtime): " in out
    assert "Strategy samples, Pythia (" in out
    assert "use more shards" in out


def test_the_plan_knows_the_retries_of_the_slurm_profile():
    profile = yaml.safe_load((ROOT / "profiles/slurm/config.yaml").read_text())
    assert profile["retries"] == SLURM_RETRIES


def test_models_too_small_to_scale_have_hours_only_with_their_own_rates(capsys):
    files = ["--config", *QUICK]
    assert (
        "No hours for Llama, 1M toy (0.0012B), Gemma, 1M toy (0.0011B), Pyth"
        in plan(capsys, *files)[1]
    )
    own = [f"{model}=1000" for model in load(QUICK).models]
    rates = [part for kind in DEFAULT_RATES for part in (f"--{kind}", *own)]
    _, out, _ = plan(capsys, *files, *rates, "--format", "json")
    stages = [row for row in json.loads(out)["stages"] if row["stage"] != "Neuron localisation"]
    total = sum(row["tokens"] for row in stages)
    assert sum(row["hours"] for row in stages) == pytest.approx(total / 1000 / 3600)


def test_models_without_a_rate_do_not_count_for_tokens_per_second(tmp_path, capsys):
    only_llama = tmp_path / "only_llama.yaml"
    only_llama.write_text("models: { gemma: null, pythia: null }")
    speeds = []
    for overlay in ([], [only_llama]):
        files = ["--config", *QUICK, *overlay]
        _, out, _ = plan(capsys, *files, "--sampling", "llama2=5000", "--format", "csv")
        rows = {row["stage"]: row for row in csv.DictReader(io.StringIO(out))}
        assert rows["Strategy samples"]["rate"] == "stated"
        speeds.append(float(rows["Strategy samples"]["tokens_per_second"]))
    assert speeds[0] == pytest.approx(speeds[1])


def test_hours_that_are_unknown_are_null_in_json(capsys):
    def not_json(constant):
        raise ValueError(constant)

    _, out, _ = plan(capsys, "--config", *QUICK, "--format", "json")
    stages = json.loads(out, parse_constant=not_json)["stages"]
    assert None in {row["longest_job"] for row in stages}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sampling", "0"], "--sampling must be a positive number (got 0)"),
        (["--training", "llama2=fast"], "--training must be a positive number (got fast)"),
        (["--characters-per-token", "nan"], "--characters-per-token must be a positive number"),
    ],
)
def test_a_rate_must_be_a_positive_number(capsys, arguments, message):
    assert main(["plan", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_every_figure_says_where_its_rate_comes_from(capsys):
    _, out, _ = plan(capsys, "--training", "3000", "--format", "csv")
    rows = {row["stage"]: row for row in csv.DictReader(io.StringIO(out))}
    assert rows["LoRA training"]["rate"] == "stated"
    assert rows["Strategy samples"]["rate"] == "assumed"
    assert rows["Total"]["rate"] == "stated, assumed"
    assert rows["Metrics"]["rate"] == ""
    _, out, _ = plan(capsys)
    assert "sampling and greedy come from one measurement on an H200, training and" in out
    assert "Sizes from a table, not read from the hub: Llama2, Gemma, Pythia." in out


def test_a_larger_gpu_makes_the_search_for_neurons_faster(capsys):
    def localisation_hours(gpu):
        _, out, _ = plan(capsys, "--gpu", gpu, "--format", "json")
        stages = json.loads(out)["stages"]
        return sum(row["hours"] for row in stages if row["stage"] == "Neuron localisation")

    assert localisation_hours("a100-80gb") < localisation_hours("a100-40gb")
    assert plan(capsys, "--gpu", "tpu")[2].startswith("error: --gpu must be one of a100-80gb, ")


def test_rates_come_from_a_finished_run_only_if_there_is_one(capsys, tmp_path):
    status, out, err = plan(capsys, "--compare", "--from", tmp_path, "--sampling", "100")
    assert status == 2
    assert "omit the stated rates" in err
    status, out, err = plan(capsys, "--compare")
    assert (status, out) == (2, "")
    assert err == "error: --compare needs --from results/RUN, the finished run\n"
    status, out, err = plan(capsys, "--from", tmp_path)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "has no timings of a model of the configuration; give the folder of a finished" in err
    assert plan(capsys, "--from", tmp_path / "none") == (
        2, "", f"error: --from {tmp_path}/none: no such folder; give results/RUN, a finished run\n"
    )  # fmt: skip


def test_a_rate_must_be_of_a_model_of_the_configuration(capsys):
    status, out, err = plan(capsys, "--greedy", "nobody=3")
    assert (status, out) == (2, "")
    assert "--greedy: 'nobody' is not a model of the configuration (llama2, gemma, pythia)" in err
