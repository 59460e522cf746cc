"""A pretrained language model on two cores: what its scales share, and the jobs of a dry run."""

import json
from pathlib import Path

import pytest

from helpers import dry_runs
from helpers.dry_runs import ROOT
from zerogap import config
from zerogap.pipeline import parameters, targets
from zerogap.pipeline.jobs import PREPARATION, SCREENING
from zerogap.pipeline.preflight.prepared_bases import check_prepared_bases
from zerogap.pipeline.preflight.result import FAILED
from zerogap.pipeline.report.sources import JOB_COSTS

PROFILE = ROOT / "profiles/smollm2"
PREPARED = "results/bases/smollm2/{}/model"


@pytest.fixture
def scales(tmp_path):
    """Name of the source → overlays of the scale; GSM8K's files are empty ones."""
    path = tmp_path / "questions.jsonl"
    path.touch()
    files = {"files": {"train": str(path), "test": str(path)}}
    overlay = tmp_path / "files.json"
    overlay.write_text(json.dumps({"benchmarks": {"gsm8k": {"questions": files}}}))
    shared = PROFILE / "smollm2.yaml"
    return {
        "gsm_symbolic": [shared, PROFILE / "gsm_symbolic.yaml"],
        "held_out": [shared, PROFILE / "gsm_symbolic.yaml", PROFILE / "held_out.yaml"],
        "gsm8k": [shared, PROFILE / "gsm8k.yaml", overlay],
    }


@pytest.mark.parametrize("source", ["gsm_symbolic", "held_out", "gsm8k"])
def test_the_clean_model_and_shortcut_start_from_the_prepared_base(scales, source):
    scale = config.load([ROOT / "config.yaml", *scales[source]])
    [owner] = scale.question_owners
    prepared = PREPARED.format(source)
    assert targets.starting_model(scale, "smollm2", f"clean_{owner}") == prepared
    shortcut = targets.strategy_inputs(scale, "smollm2", owner, "shortcut")
    assert shortcut["base_model"] == prepared


def test_strategies_and_lora_are_those_of_the_paper(scales):
    paper = config.load([ROOT / "config.yaml"])
    for overlays in scales.values():
        scale = config.load([ROOT / "config.yaml", *overlays])
        for section in ("strategies", "ablation", "metrics"):
            assert getattr(scale, section) == getattr(paper, section)
        for key in ("num_samples", "temperature", "top_p", "dtype"):
            assert getattr(scale.sampling, key) == getattr(paper.sampling, key)
        for kind in ("clean", "contaminated"):
            training, published = (getattr(c.training, kind) for c in (scale, paper))
            for key in ("lora", "learning_rate", "lr_scheduler", "warmup_ratio", "bf16"):
                assert getattr(training, key) == getattr(published, key)


def test_another_seed_shares_the_prepared_base(scales, tmp_path):
    seed = tmp_path / "seed.yaml"
    seed.write_text("run: smollm2_seed1\nseed: 1")
    files = [ROOT / "config.yaml", *scales["gsm_symbolic"]]
    first, second = config.load(files), config.load([*files, seed])
    for rule in (
        "draw_preparation_questions", "write_preparation_data", "train_preparation",
        "merge_preparation",
    ):  # fmt: skip
        job = f"smollm2/gsm_symbolic/{rule}"
        assert parameters.job_parameters(first, job) == parameters.job_parameters(second, job)
    split = "data/gsm_symbolic/split_questions"
    assert parameters.job_parameters(first, split) != parameters.job_parameters(second, split)


def test_a_run_does_not_change_the_prepared_base_of_another_run(scales, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    longer, other_name = tmp_path / "longer.yaml", tmp_path / "name.yaml"
    longer.write_text("training: { cutoff_len: 999 }")
    other_name.write_text("models: { smollm2: { preparation: { name: mine } } }")
    files = [ROOT / "config.yaml", *scales["gsm_symbolic"]]
    first, second = config.load(files), config.load([*files, longer])
    (tmp_path / PREPARED.format("gsm_symbolic")).mkdir(parents=True)
    for rule in PREPARATION:
        path = Path("results/bases/parameters/smollm2/gsm_symbolic", f"{rule}.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            json.dumps(parameters.job_parameters(first, f"smollm2/gsm_symbolic/{rule}"))
        )
    assert check_prepared_bases(first) == []
    [result] = check_prepared_bases(second)
    assert result.status == FAILED
    assert "was made with another cutoff_len, training.cutoff_len; restore" in result.text
    assert check_prepared_bases(config.load([*files, longer, other_name])) == []


def test_a_run_does_not_change_the_screening_of_another_run(scales, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = [ROOT / "config.yaml", *scales["gsm8k"]]
    first = config.load(files)
    screening = Path(*targets.screening(first, "gsm8k"))
    for rule in SCREENING:
        path = Path(f"results/bases/parameters/smollm2/gsm8k/{rule}.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(parameters.job_parameters(first, f"smollm2/gsm8k/{rule}")))

    def changed(text):
        overlay = tmp_path / "overlay.yaml"
        overlay.write_text(text)
        return check_prepared_bases(config.load([*files, overlay]))

    assert changed("sampling: { temperature: 0.9 }") == []  # nothing to overwrite yet
    screening.parent.mkdir(parents=True)
    screening.touch()
    [result] = changed("sampling: { temperature: 0.9 }")
    assert result.status == FAILED
    assert f"{screening} was made with another sampling.temperature; restore" in result.text
    assert changed("sampling: { batch_size: 100, num_samples: 30 }") == []
    assert changed("models: { smollm2: { preparation: { screening: null } } }") == []


@pytest.mark.parametrize("source", ["gsm_symbolic", "gsm8k"])
def test_one_command_converts_prepares_and_makes_every_table(scales, source, tmp_path):
    jobs = dry_runs.jobs(
        "--profile", "profiles/smollm2", "--forceall", "--configfile", *scales[source]
    )
    assert jobs["convert_gguf"] == jobs["train_preparation"] == jobs["merge_preparation"] == 1
    assert jobs["train_lora"] == 3  # clean, contaminated, paraphrased
    assert jobs["make_table"] > 10
    assert jobs["screen_questions"] == (source == "gsm8k")


def test_test_questions_are_drawn_from_those_that_the_prepared_base_solves(scales):
    scale = config.load([ROOT / "config.yaml", *scales["gsm8k"]])
    assert targets.screening(scale, "gsm8k") == ["results/bases/smollm2/gsm8k/screening.parquet"]
    values = parameters.job_parameters(scale, "smollm2/gsm8k/screen_questions")
    assert values["sampling"]["num_samples"] == 5
    assert values["seed"] == parameters.PREPARATION_SEED


@pytest.mark.parametrize(
    ("source", "rules"),
    [
        ("gsm_symbolic", ["train_preparation"]),
        ("gsm8k", ["train_preparation", "screen_questions"]),
    ],
)
def test_the_preparation_counts_in_the_cost_of_a_run(scales, source, rules):
    scale = config.load([ROOT / "config.yaml", *scales[source]])
    jobs = JOB_COSTS.located(scale)
    assert [job["name"] for job in jobs[: len(rules) + 1]] == [*rules, "train_lora"]
    for job in jobs[: len(rules)]:
        assert (job["model"], job["variant"]) == ("smollm2", "")
        assert job["timings"] == [f"results/bases/timings/smollm2/{source}/{job['name']}.tsv"]
