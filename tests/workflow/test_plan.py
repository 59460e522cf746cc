"""The jobs that `zerogap plan` counts are those that Snakemake plans, rule by rule."""

import re
from collections import Counter

import pytest

from helpers import dry_runs
from helpers.dry_runs import ROOT
from zerogap import config
from zerogap.pipeline import jobs

STAGES = ("data", "bases", "train", "preparation", "sample", "metrics")  # tables and figures follow

OVERLAYS = {
    "paper": "{}",
    "less": (
        "strategies: { shortcut: null }\nablation: { railcap_n1: null }\nbenchmarks: { pq: null }"
    ),
    "more": (
        "sampling: { num_shards: 3 }\nmodels: { gemma: null }\n"
        "benchmarks: { toy: { file: workflow/benchmarks/toy_gsm8k.yaml, label: Toy } }"
    ),
    "quick": (ROOT / "profiles/quick/quick.yaml").read_text(),
    "workstation": (ROOT / "profiles/workstation/workstation.yaml").read_text(),
    "smollm2": (ROOT / "profiles/smollm2/smollm2.yaml").read_text(),
}
BENCHMARKS = {"smollm2": [ROOT / "profiles/smollm2/gsm_symbolic.yaml"]}  # overlays of overlays


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_plan_counts_the_jobs_that_snakemake_plans(name, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    path = tmp_path / "overlay.yaml"
    path.write_text(OVERLAYS[name])
    overlays = [path, *BENCHMARKS.get(name, [])]
    files = "".join((ROOT / f"workflow/rules/{name}.smk").read_text() for name in STAGES)
    rules = re.findall(r"(?m)^ *(?:rule|use rule \w+ as) (\w+)", files)
    planned = dry_runs.jobs("--forceall", "--cores", "1", "--configfile", *overlays)
    counts = Counter(job.rule for job in jobs.all_jobs(config.load(["config.yaml", *overlays])))
    assert counts == {rule: count for rule, count in planned.items() if rule in rules}
