"""A run whose disk is full."""

from pathlib import Path

import yaml

from helpers.disks import remount, small_disk
from helpers.dry_runs import link_checkout, snakemake
from zerogap.data import gsm8k_format
from zerogap.io import parquet

# Test questions of about 300 kB.
OVERLAY = {
    "run": "disk",
    "benchmarks": {"gsm8k": {"questions": {"generated": {"num_train": 80, "num_test": 900}}}},
}
DATA = "results/disk/data"  # a disk of its own: that of results/disk is checked before the run


def split_questions(folder: Path, *options: str):
    (folder / "overlay.yaml").write_text(yaml.safe_dump(OVERLAY))
    return snakemake(
        f"{DATA}/gsm8k/split.parquet",
        *("--profile", "profiles/quick", *options),
        *("--configfile", "profiles/quick/quick.yaml", "overlay.yaml"),
        workdir=folder,
    )


def test_a_run_continues_when_its_full_disk_has_space_again(tmp_path):
    folder = link_checkout(tmp_path / "run")
    log = folder / "results/disk/logs/data/gsm8k/fetch_questions.log"
    with small_disk(folder / DATA, "128k") as data:
        process = split_questions(folder)
        assert process.returncode == 1
        error = f"error: {DATA}/gsm8k/test.jsonl: not written (No space"
        last_lines = process.stderr.partition("1 job failed:\n")[2]
        assert last_lines.startswith(
            f"fetch_questions owner=gsm8k\n  log: {log.relative_to(folder)}\n  | {error}"
        )
        (line,) = log.read_text().splitlines()
        assert line.startswith(error)
        assert not list(data.glob("gsm8k/*"))
        remount(data, "size=100m")
        process = split_questions(folder, "--no-hooks")
        assert process.returncode == 0, process.stderr
        assert len(gsm8k_format.load(data / "gsm8k/test.jsonl")) == 900
        assert len(parquet.read(data / "gsm8k/split.parquet", "questions"))
