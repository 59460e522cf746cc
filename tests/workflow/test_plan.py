"""What `zerogap plan` counts is what Snakemake plans, rule by rule."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from helpers.paths import ROOT
from zerogap import config
from zerogap.pipeline import jobs

SNAKEMAKE = Path(sys.executable).with_name("snakemake")
STAGES = ("data", "bases", "train", "decode", "metrics")  # what follows are tables and figures


def dry_run(overlays: list[Path]) -> Counter:
    """Rule → jobs of a run in which nothing exists yet, of the stages that are counted."""
    arguments = ["-n", "--forceall", "--cores", "1", "--configfile", *overlays]
    done = subprocess.run(
        [SNAKEMAKE, *arguments] if overlays else [SNAKEMAKE, *arguments[:-1]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": f"{SNAKEMAKE.parent}:{os.environ['PATH']}"},
        check=False,
    )
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    files = "".join((ROOT / f"workflow/rules/{name}.smk").read_text() for name in STAGES)
    rules = re.findall(r"^ *(?:use )?rule (?:\w+ as )?(\w+)", files, re.M)
    table = text.split("Job stats:")[1].split("total")[0]
    found = re.findall(r"^(\w+) +(\d+)$", table, re.M)
    return Counter({rule: int(count) for rule, count in found if rule in rules})


@pytest.mark.parametrize(
    "overlays",
    [
        "",
        "decoding: { shards: 3 }\nmodels: { gemma: null }",
        "strategies: { shortcut: null }\nablation: { railcap_n1: null }",
        (ROOT / "profiles/quick/quick.yaml").read_text(),
        (ROOT / "profiles/full/full.yaml").read_text(),
    ],
    ids=["paper", "shards", "fewer", "quick", "full"],
)
def test_the_plan_counts_what_snakemake_plans(overlays, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    files = []
    if overlays:
        files = [tmp_path / "overlay.yaml"]
        files[0].write_text(overlays)
    values = config.load([ROOT / "config.yaml", *files])
    assert Counter(job.rule for job in jobs.all_jobs(values)) == dry_run(files)
