"""What a run says in the terminal, targets and failures; the call of Snakemake within one."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from helpers.paths import ROOT
from zerogap.errors import InputError
from zerogap.pipeline.terminal import check_targets, describe_failures, snakemake_command

TARGETS = ["all", "table_main", "table_pairs", "figure_strata"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tabel_main", "'tabel_main' is not a target; did you mean table_main, table_pairs? "),
        ("nonsense", "'nonsense' is not a target; docs/workflow.md#targets lists all"),
    ],
)
def test_an_unknown_target_is_answered_with_the_nearest_names(name, message):
    with pytest.raises(InputError) as caught:
        check_targets(["all", name], TARGETS)
    assert str(caught.value).startswith(message)


def failed(rule: str, log: Path, **wildcards: str) -> SimpleNamespace:
    """What is read of a job of Snakemake."""
    named = SimpleNamespace(name=rule)
    return SimpleNamespace(
        rule=named, wildcards_dict=wildcards, log=[str(log)], is_group=lambda: False
    )


def test_failed_jobs_and_those_of_groups_are_listed_with_the_ends_of_their_logs(tmp_path):
    log, empty = tmp_path / "train.log", tmp_path / "empty.log"
    log.write_text("".join(f"line {k}\n" for k in range(9)) + "error: the disk is full\n\n")
    empty.touch()
    jobs = [failed("make_table", empty, table="main"), failed("merge_lora", tmp_path / "none.log")]
    group = SimpleNamespace(jobs=jobs, is_group=lambda: True)
    old = tmp_path / "old.log"
    old.write_text("error: that was fixed\n")
    os.utime(old, (0, 0))
    jobs.append(failed("write_index", old))
    train = failed("train_lora", log, model="llama2", variant="pq")
    text = describe_failures([train, group], start=1)
    assert text.splitlines() == [
        "4 jobs failed:",
        "make_table table=main",
        f"  log: {empty}",
        "  | (the log is empty)",
        "merge_lora",
        f"  log: {tmp_path / 'none.log'}",
        "  | (the job was stopped before it wrote its log)",
        "train_lora model=llama2 variant=pq",
        f"  log: {log}",
        *(f"  | line {k}" for k in range(5, 9)),
        "  | error: the disk is full",
        "write_index",
        f"  log: {old}",
        "  | (the job was stopped before it wrote its log)",
    ]


def test_the_nested_call_keeps_overlays_and_values(monkeypatch):
    monkeypatch.chdir(ROOT)
    command = snakemake_command(ROOT / "Snakefile", ["my overlay.yaml"], ["seed=1"])
    assert command == (
        "python -m snakemake --nolock --snakefile Snakefile"
        " --configfile 'my overlay.yaml' --config seed=1"
    )
    assert snakemake_command("Snakefile", [], []).endswith("--snakefile Snakefile")
