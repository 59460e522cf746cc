"""Bad files, an unreachable hub, a full disk: one error line, no incomplete output."""

import json
import socket
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import compute_metrics
from helpers.disks import small_disk
from helpers.dry_runs import link_checkout, snakemake
from helpers.job_inputs import BENCHMARK
from helpers.scripts import run_job, run_script
from zerogap.data import gsm8k_format
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.io.resume import Journal


def assert_one_error(process: subprocess.CompletedProcess[str], *phrases: str) -> None:
    """The script failed with one error line, which contains the phrases."""
    assert process.returncode == 1, process.stdout + process.stderr
    assert "Traceback" not in process.stderr
    (error,) = [line for line in process.stderr.splitlines() if line.startswith("error: ")]
    for phrase in phrases:
        assert phrase in error, error


def fetch(folder: Path, questions: dict[str, Any], **options: Any) -> Any:
    """Run fetch_questions; its outputs are in `folder`."""
    parameters = {"questions": questions, "seed": 0, **BENCHMARK}
    outputs = {"train": folder / "train.jsonl", "test": folder / "test.jsonl"}
    return run_script("fetch_questions", folder.parent, parameters, **outputs, **options)


@pytest.fixture
def job(tmp_path):
    """compute_metrics on one strategy, whose `solve` table the function writes."""
    ids = ["a", "b", "c", "d"]
    leaked = [False, True, False, True]
    texts = dict.fromkeys(("question", "rationale", "gold", "paraphrase"), "text")
    questions = pd.DataFrame({"question_id": ids, "leaked": leaked}).assign(**texts)
    parquet.write(tmp_path / "questions.parquet", questions, "questions", {})

    def write_solve(name: str, ids: list[str] = ids, **provenance: Any) -> Path:
        table = pd.DataFrame({"question_id": ids, "leaked": leaked})
        table = table.assign(n_correct=1, n_samples=2, first_correct=True)
        schema = parquet.CONTRACTS["solve"]
        arrow = pa.Table.from_pandas(table, schema=schema, preserve_index=False)
        arrow = arrow.replace_schema_metadata({"zerogap": json.dumps(provenance)})
        pq.write_table(arrow, tmp_path / name)
        return tmp_path / name

    def make(name: str, *arguments: Any, **provenance: Any) -> dict[str, Any]:
        return {
            "input": {
                "clean": write_solve("clean.parquet", engine="zerogap"),
                "strategies": [write_solve(name, *arguments, **provenance)],
                "questions": tmp_path / "questions.parquet",
            },
            "output": [tmp_path / "outputs/metrics.parquet"],
            "params": {
                "strategies": ["identity"], "only": [], "options": {"n_resamples": 100},
                "metadata": {},
            },
            "wildcards": {"model": "m", "benchmark": "d"},
        }  # fmt: skip

    return make


OURS, OTHER = {"engine": "zerogap"}, {"engine": "vllm 0.32.0"}


@pytest.mark.parametrize(
    ("ids", "provenance", "message"),
    [
        ("abbd", OURS, r"t\.parquet: duplicate row: question_id b .*; regenerate it"),
        ("abce", OURS, "identity: .*'d' is missing.*the same questions"),
        ("abcd", OTHER, r"drawn with engine vllm, but .*clean\.parquet with zerogap, so they"),
        ("abcd", {"shards": [OURS, {"source": OTHER}]}, r"t\.parquet: was drawn with engine vllm"),
    ],
)
def test_tables_that_cannot_be_compared_are_refused(job, tmp_path, ids, provenance, message):
    values = job("t.parquet", list(ids), **provenance)
    spaces = {k: SimpleNamespace(**v) if isinstance(v, dict) else v for k, v in values.items()}
    with pytest.raises(InputError, match=message):
        compute_metrics.main(SimpleNamespace(**spaces))
    assert not (tmp_path / "outputs").exists()


def test_a_failed_write_leaves_the_old_table(job, tmp_path):
    def run(max_file_size=None):
        values = job("good.parquet")
        return run_job(
            "compute_metrics", tmp_path / "log.txt", max_file_size=max_file_size, **values
        )

    process = run()
    assert process.returncode == 0, process.stderr
    output = tmp_path / "outputs/metrics.parquet"
    content = output.read_bytes()
    assert_one_error(run(max_file_size=3_000), "metrics.parquet: not written")
    assert output.read_bytes() == content
    assert [path.name for path in output.parent.iterdir()] == ["metrics.parquet"]


DATA_SET = {"repository": "nobody/nothing", "revision": "0" * 40}
FROM_HUB: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "fetch_questions": (
        "unreachable",
        {"questions": {"source": "hub", "hub": DATA_SET}, "seed": 0, **BENCHMARK},
        ["train", "test"],
    ),
    "prepare_instructions": (
        "switched off",
        {"source": "hub", "options": DATA_SET, "num_examples": 2, "seed": 0},
        ["output"],
    ),
    "fetch_base": ("switched off", {"repository": "nobody/nothing", "revision": "m"}, ["output"]),
}


@pytest.mark.parametrize("name", FROM_HUB)
def test_a_hub_that_cannot_be_reached_is_reported(tmp_path, name):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
    state, parameters, outputs = FROM_HUB[name]
    env = {"HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path / "hub"), "NO_PROXY": "127.0.0.1"}
    env |= {"HF_HUB_OFFLINE": "1"} if state == "switched off" else {}
    paths = {option: tmp_path / "outputs" / option for option in outputs}
    process = run_script(name, tmp_path, parameters, env=env, **paths)
    remedy = "give a local folder" if name == "fetch_base" else "check"
    assert_one_error(process, "nobody/nothing", remedy)
    assert not any(path.exists() for path in paths.values())


def test_a_file_size_limit_is_reported_and_the_next_attempt_succeeds(tmp_path):
    """A quota has the same effect, but needs root."""
    outputs = tmp_path / "outputs"
    # Few training questions, and far more test questions than there is space for.
    many = {"source": "generated", "generated": {"num_train": 2, "num_test": 2000}}
    process = fetch(outputs, many, max_file_size=20_000)
    assert_one_error(process, "test.jsonl: not written (File too large)", "free some space")
    assert {path.name for path in outputs.iterdir()} <= {"train.jsonl"}
    assert fetch(outputs, many).returncode == 0


def test_a_full_disk_in_the_middle_of_sampling_keeps_the_finished_parts(tmp_path):
    with small_disk(tmp_path / "samples.parquet.work", "64k") as folder:
        journal = Journal(folder / "parts.jsonl", {})
        journal.add("first", [1])
        with pytest.raises(InputError, match=r"parts\.jsonl: not written \(No space left"):
            journal.add("second", "x" * 200_000)
        resumed = Journal(folder / "parts.jsonl", {})
        assert resumed.get("first") == [1]
        assert resumed.get("second") is None


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
        subprocess.run(["mount", "-o", "remount,size=100m", data], check=True)
        process = split_questions(folder, "--no-hooks")
        assert process.returncode == 0, process.stderr
        assert len(gsm8k_format.load(data / "gsm8k/test.jsonl")) == 900
        assert len(parquet.read(data / "gsm8k/split.parquet", "questions"))
