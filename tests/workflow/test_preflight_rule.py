"""Preflight in a run: it stands before everything, and makes nothing again."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.paths import ROOT

SNAKEMAKE = Path(sys.executable).with_name("snakemake")
SPLIT, MORE = (f"results/quick/data/{name}" for name in ("split.parquet", "instructions.jsonl"))
ON_HUB = ("--config", "models={llama2: {base: nobody/nothing}}")  # and the scale is an offline one
FAILURE = "FAILED   hub, models.llama2: 'nobody/nothing' is no folder here"


@pytest.fixture
def checkout(tmp_path):
    """A folder in which the workflow runs and leaves its results."""
    for name in ("workflow", "profiles", "config.yaml", "Snakefile"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def snakemake(folder: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [SNAKEMAKE, "--profile", "profiles/quick", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": f"{SNAKEMAKE.parent}:{os.environ['PATH']}"},
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_run_that_would_fail_starts_nothing(checkout):
    code, text = snakemake(checkout, SPLIT, *ON_HUB)
    assert code != 0
    assert FAILURE in text
    assert "Traceback" not in text
    assert not (checkout / "results").exists()

    assert snakemake(checkout, "-n", SPLIT, *ON_HUB)[0] == 0  # a dry run asks nobody
    assert snakemake(checkout, "--no-hooks", SPLIT, *ON_HUB)[0] == 0  # for who knows better


def test_what_is_made_is_not_made_again_for_the_checks(checkout):
    code, text = snakemake(checkout, SPLIT)
    assert code == 0, text
    findings = (checkout / "results/quick/preflight.txt").read_text()
    assert re.match(r"(?s)ok       .*skipped  GPU memory|ok       .*ok       GPU memory", findings)
    made = {path: path.stat().st_mtime_ns for path in (checkout / "results").rglob("*.parquet")}
    assert made

    assert snakemake(checkout, MORE, *ON_HUB)[0] != 0
    (checkout / "results/quick/preflight.txt").unlink()
    code, text = snakemake(checkout, SPLIT, MORE)
    assert code == 0, text
    assert (checkout / MORE).exists()
    assert made == {path: path.stat().st_mtime_ns for path in made}


def test_it_can_be_asked_for_alone(checkout):
    for _ in range(2):
        code, text = snakemake(checkout, "preflight")
        assert code == 0, text
        assert "ok       end token of pythia: '<|endoftext|>'" in text
        assert "ok       disk space: about 0.1 GB to come in results/quick" in text
