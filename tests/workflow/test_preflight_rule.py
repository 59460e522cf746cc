"""The checks before a run: they come before everything else, and rerun nothing."""

import re

import pytest

from helpers.dry_runs import link_checkout, snakemake

SPLIT = "results/quick/data/gsm8k/split.parquet"
INSTRUCTIONS = "results/quick/data/instructions.jsonl"
ON_HUB = ("--config", "models={llama2: {base: nobody/nothing}}")  # at an offline scale
FAILURE = "FAILED   hub, models.llama2: 'nobody/nothing'"


@pytest.fixture
def quick(tmp_path):
    """Snakemake at the quick scale in a folder of its own; its exit status and output."""
    link_checkout(tmp_path)

    def run(*arguments: str) -> tuple[int, str]:
        process = snakemake("--profile", "profiles/quick", *arguments, workdir=tmp_path)
        return process.returncode, process.stdout + process.stderr

    return run


def test_a_run_that_would_fail_starts_no_job_and_the_checks_rerun_none(quick, tmp_path):
    code, text = quick(SPLIT, *ON_HUB)
    assert code != 0
    assert FAILURE in text
    assert "Traceback" not in text
    assert not (tmp_path / "results").exists()

    assert quick("-n", SPLIT, *ON_HUB)[0] == 0  # a dry run checks nothing
    assert quick("--no-hooks", SPLIT, *ON_HUB)[0] == 0  # the way around the checks
    times = {path: path.stat().st_mtime_ns for path in tmp_path.glob("results/**/*.parquet")}
    assert times

    code, text = quick(SPLIT, INSTRUCTIONS)
    assert code == 0, text
    assert (tmp_path / INSTRUCTIONS).exists()
    results = (tmp_path / "results/quick/preflight.txt").read_text()
    assert re.match(r"(?s)ok       .*ok       GPU memory", results)
    assert times == {path: path.stat().st_mtime_ns for path in times}


def test_the_checks_can_be_run_alone(quick):
    code, text = quick("--no-hooks", "check_preflight")
    assert code == 0, text
    assert "ok       tokenizer of pythia: ends responses with '<|endoftext|>'" in text
    assert re.search(r"ok       disk space: .*0\.\d GB.* results/quick", text)
