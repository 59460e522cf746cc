"""The line on long jobs in a real run of Snakemake."""

import re

from helpers.dry_runs import ROOT, snakemake

SNAKEFILE = """
import sys
from zerogap.errors import InputError
from zerogap.pipeline import jobs

rule all:
    input: "b.txt"

rule first:
    output: "a.txt"
    benchmark: "a.tsv"
    shell: "touch {output}"

rule between:
    input: "a.txt"
    output: "between.txt"
    shell: "touch {output}"

rule second:
    input: "between.txt"
    output: "b.txt"
    benchmark: "b.tsv"
    shell: "touch {output}"

include: "%s"
"""
QUIET = ("--cores", "2", "--quiet", "rules", "host")


def test_long_jobs_are_announced_with_the_time_left(tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE % (ROOT / "workflow/rules/terminal.smk"))
    assert "long jobs" not in snakemake("-n", *QUIET, workdir=tmp_path).stderr
    process = snakemake(*QUIET, workdir=tmp_path, env={"PYTHONPATH": f"{ROOT}/workflow"})
    assert process.returncode == 0, process.stderr
    lines = re.findall(r"^\d of .*long jobs.*$", process.stderr, re.M)
    assert lines == [
        "0 of 2 long jobs done; running: first",
        "1 of 2 long jobs done; running: second",
    ]
