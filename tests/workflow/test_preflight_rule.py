"""The checks before a run: they come before everything else, and rerun nothing."""

import re
from pathlib import Path

import pytest

from helpers.dry_runs import link_checkout, snakemake

SPLIT = "results/quick/data/gsm8k/split.parquet"
INSTRUCTIONS = "results/quick/data/instructions.jsonl"
ON_HUB = ("--config", "models={llama2: {base: nobody/nothing}}")  # at an offline scale
FAILURE = "FAILED   hub, models.llama2: 'nobody/nothing'"


@pytest.fixture
def checkout(tmp_path) -> Path:
    return link_checkout(tmp_path)


def quick(folder: Path, *arguments: str) -> tuple[int, str]:
    process = snakemake("--profile", "profiles/quick", *arguments, workdir=folder)
    return process.returncode, process.stdout + process.stderr


def test_a_run_that_would_fail_starts_no_job(checkout):
    code, text = quick(checkout, SPLIT, *ON_HUB)
    assert code != 0
    assert FAILURE in text
    assert "Traceback" not in text
    assert not (checkout / "results").exists()

    assert quick(checkout, "-n", SPLIT, *ON_HUB)[0] == 0  # a dry run checks nothing
    assert quick(checkout, "--no-hooks", SPLIT, *ON_HUB)[0] == 0  # the way around the checks


def test_the_checks_rerun_no_job(checkout):
    code, text = quick(checkout, SPLIT)
    assert code == 0, text
    results = (checkout / "results/quick/preflight.txt").read_text()
    assert re.match(r"(?s)ok       .*skipped  GPU memory|ok       .*ok       GPU memory", results)
    times = {path: path.stat().st_mtime_ns for path in (checkout / "results").rglob("*.parquet")}
    assert times

    assert quick(checkout, INSTRUCTIONS, *ON_HUB)[0] != 0
    (checkout / "results/quick/preflight.txt").unlink()
    code, text = quick(checkout, SPLIT, INSTRUCTIONS)
    assert code == 0, text
    assert (checkout / INSTRUCTIONS).exists()
    assert times == {path: path.stat().st_mtime_ns for path in times}


def test_the_checks_can_be_run_alone(checkout):
    for _ in range(2):
        code, text = quick(checkout, "check_preflight")
        assert code == 0, text
        assert "ok       tokenizer of pythia: ends responses with '<|endoftext|>'" in text
        assert re.search(r"ok       disk space: .*0\.\d GB.* results/quick", text)
    code, text = quick(checkout, "--no-hooks", "check_preflight", *ON_HUB)
    assert code != 0
    assert FAILURE in text
