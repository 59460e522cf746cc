"""`zerogap run` with Snakemake: dry runs."""

import subprocess
import sys

import pytest

from helpers.dry_runs import environment, job_counts, link_checkout


@pytest.fixture
def run(tmp_path):
    """Run the command in a folder of a checkout; its exit status and what it prints."""
    root = link_checkout(tmp_path / "zerogap")
    folder = root / "overlays"
    folder.mkdir()
    (folder / "mine.yaml").write_text("run: mine\nmodels: { gemma: null, pythia: null }")

    def run(*words):
        process = subprocess.run(
            [sys.executable, "-m", "zerogap", "run", *words, "--dry-run"],
            cwd=folder,
            env=environment(root),
            capture_output=True,
            text=True,
            check=False,
        )
        return process.returncode, process.stdout + process.stderr

    return run


def test_an_overlay_changes_the_scale_of_the_profile(run):
    status, text = run("table_main", "--profile", "quick", "--with", "mine.yaml")
    assert status == 0, text
    assert job_counts(text)["train_lora"] == 3  # one toy model: clean, and contaminated with two
    assert "--configfile profiles/quick/quick.yaml overlays/mine.yaml" in text


def test_a_dry_run_of_everything_fits_a_screen(run):
    status, text = run("all", "--profile", "quick")
    assert status == 0
    assert text.count("Job stats") == 1
    assert len(text.splitlines()) <= 45


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("table_mian", "error: 'table_mian' is not a target; did you mean table_main"),
        ("sample_responses", "error: 'sample_responses' is not a target; "),  # it has wildcards
    ],
)
def test_what_is_not_a_target_is_answered_in_one_line(run, target, message):
    status, text = run(target, "--profile", "quick")
    assert status == 1
    assert text.splitlines()[-1].startswith(message)
    assert "Exception" not in text
    assert "Traceback" not in text
