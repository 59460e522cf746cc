"""Calls of Snakemake and `zerogap run`: what they print, and mistakes before anything runs."""

from helpers.dry_runs import environment, job_counts, link_checkout, snakemake
from helpers.scripts import python


def test_unlikely_values_are_warnings_and_the_run_continues(tmp_path):
    (tmp_path / "overlay.yaml").write_text("metrics: { bins: 60 }")
    resources = ("decode_greedy:runtime=2-0", "train_lora:runtime=2d", "merge_shards:runtime=5")
    process = snakemake(
        *("-n", "--profile", "profiles/quick", "--configfile", "profiles/quick/quick.yaml"),
        *(tmp_path / "overlay.yaml", "--set-resources", *resources, "sample_response:runtime=9h"),
        *("--", "table_main"),
    )
    assert process.returncode == 0
    text = process.stdout + process.stderr
    for warning in (
        "metrics.bins is 60, more than sampling.num_samples (20)",
        "set-resources: the runtime 2-0 of decode_greedy is 2 min, too short for a job on a GPU",
        "set-resources: there is no rule 'sample_response'; did you mean sample_responses",
    ):
        assert text.count(warning) == 1
    assert text.count("set-resources: ") == 2


def test_a_rule_with_wildcards_is_not_a_target_which_is_said_in_one_line():
    process = snakemake("-n", "sample_responses", "--profile", "profiles/quick")
    assert process.returncode == 1
    text = process.stdout + process.stderr
    message = "error: 'sample_responses' is not a target; "
    assert text.splitlines()[-1].startswith(message)
    assert "Exception" not in text
    assert "Traceback" not in text


def test_a_dry_run_of_everything_fits_a_screen():
    process = snakemake("-n", "--forceall", "--profile", "profiles/quick")
    text = process.stdout + process.stderr
    assert text.count("Job stats") == 1
    assert len(text.splitlines()) <= 45


def test_zerogap_run_adds_an_overlay_to_the_profile(tmp_path):
    root = link_checkout(tmp_path / "zerogap")
    folder = root / "overlays"
    folder.mkdir()
    (folder / "mine.yaml").write_text("run: mine\nmodels: { gemma: null, pythia: null }")
    words = ["table_main", "--profile", "quick", "--with", "mine.yaml", "--dry-run"]
    process = python("-m", "zerogap", "run", *words, cwd=folder, env=environment(root))
    text = process.stdout + process.stderr
    assert process.returncode == 0, text
    assert job_counts(text)["train_lora"] == 3  # one toy model: clean, and contaminated with two
    assert "--configfile profiles/quick/quick.yaml overlays/mine.yaml" in text
