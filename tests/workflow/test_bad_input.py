"""Bad input, case by case: one error that names the place and the mend, and nothing half-made."""

import contextlib
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers.dry_runs import ROOT
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.sampling.checkpoint import SampleCheckpoint

# Files, the hub and the disk: every case a script, as a job calls it.


def script(
    name: str, *arguments: str | Path, env: Mapping[str, str] | None = None, largest: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run one of the workflow's scripts; `largest`, where given, limits a file's bytes."""
    limit = None
    if largest:

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

    unset = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")
    return subprocess.run(
        [sys.executable, ROOT / f"workflow/scripts/{name}.py", *arguments],
        env={key: value for key, value in os.environ.items() if key not in unset}
        | {"PYTHONPATH": str(ROOT / "workflow"), "PYTHONDONTWRITEBYTECODE": "1"}
        | dict(env or {}),
        capture_output=True,
        text=True,
        preexec_fn=limit,
        check=False,
    )


def refused(done: subprocess.CompletedProcess[str], *said: str) -> None:
    """The one error of a script, and what it has to say."""
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    (error,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    for part in said:
        assert part in error, error


def entry(question: str, answer: str) -> str:
    return json.dumps({"question": question, "answer": answer}) + "\n"


TRAIN = entry("What is 1 + 1?", "It is 1 + 1 = 2.\n#### 2")
TEST = entry("What is 2 + 3?", "It is 2 + 3 = 5.\n#### 5")
FILES = {
    "empty": (b"", "no questions in it"),
    "a JSON array": (f"[{TEST.strip()}]".encode(), "line 1: not a JSON object"),
    "CSV": (b"question,answer\nWhat is 2 + 3?,5\n", "line 1: not JSON"),
    "other keys": (b'{"prompt": "2 + 3?", "completion": "5"}', "line 1: 'question' is missing"),
    "answers as numbers": (b'{"question": "2 + 3?", "answer": 5}', "line 1: 'answer' is missing"),
    "no gold answer": (entry("2 + 3?", "It is 5.").encode(), "line 1: the answer has no '#### N'"),
    "gold that is no number": (
        (TEST + entry("3 + 3?", "Six.\n#### six")).encode(), "line 2: the gold answer: 'six'",
    ),
    "a question twice": ((TEST + TEST).encode(), "line 2: the question of line 1 again"),
    "a training question": (TRAIN.encode(), "is also a training question"),
    "UTF-16": (TEST.encode("utf-16"), "not UTF-8"),
    "Parquet": (b"PAR1\x15\x04\x15\xf0\xff\xfePAR1", "not UTF-8"),
    "cut short": (TEST.encode() + b'{"question": "What', "line 2: not JSON"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "said"), FILES.values(), ids=FILES)
def test_a_data_file_of_another_shape_is_refused(tmp_path, content, said):
    (tmp_path / "train.jsonl").write_text(TRAIN)
    (tmp_path / "test.jsonl").write_bytes(content)
    source = {"kind": "files"} | {s: str(tmp_path / f"{s}.jsonl") for s in ("train", "test")}
    made = tmp_path / "made"
    done = script(
        *("raw_data", "--source", json.dumps(source)),
        *("--train", made / "train.jsonl", "--test", made / "test.jsonl"),
    )
    refused(done, said)
    if "training question" not in said:
        assert "test.jsonl" in done.stderr
        assert {path.name for path in made.rglob("*")} <= {"train.jsonl"}


def test_more_questions_than_there_are(tmp_path):
    (tmp_path / "train.jsonl").write_text(TRAIN)
    (tmp_path / "test.jsonl").write_text(TEST)
    done = script(
        *("questions", "--train", tmp_path / "train.jsonl", "--test", tmp_path / "test.jsonl"),
        *("--n-test", "2", "--n-leaked", "1", "--n-train", "1", "--seed", "0"),
        *("--questions", tmp_path / "made/q.parquet", "--training", tmp_path / "made/t.parquet"),
    )
    refused(done, "data.n_test is 2", "has 1 questions")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("content", [b"[]", b"no JSON", b'{"prompt": "a", "completion": "b"}'])
def test_an_instruction_file_of_another_shape_is_refused(tmp_path, content):
    path = tmp_path / "instructions.jsonl"
    path.write_bytes(content)
    source = json.dumps({"kind": "files", "path": str(path)})
    output = tmp_path / "made.jsonl"
    done = script("instructions", "--source", source, "--n", "1", "--seed", "0", "--output", output)
    refused(done, str(path), "line 1")
    assert not output.exists()


def solve_table(path: Path, ids: list[str]) -> Path:
    table = pd.DataFrame({"question_id": ids}).assign(
        n_correct=1,
        n_samples=2,
        first_correct=True,
        leaked=[index % 2 for index in range(len(ids))],
    )
    schema = parquet.CONTRACTS["solve"]
    pq.write_table(pa.Table.from_pandas(table, schema=schema, preserve_index=False), path)
    return path


def read_metrics(folder: Path, strategy: Path, **options) -> subprocess.CompletedProcess[str]:
    clean = solve_table(folder / "clean.parquet", ["a", "b", "c", "d"])
    return script(
        *("metrics", "--model", "m", "--benchmark", "d", "--clean", clean),
        *("--strategies", json.dumps({"identity": str(strategy)})),
        *("--metrics", json.dumps({"n_resamples": 100})),
        *("--output", folder / "made/metrics.parquet"),
        **options,
    )


def test_question_ids_twice_are_refused(tmp_path):
    done = read_metrics(tmp_path, solve_table(tmp_path / "twice.parquet", ["a", "b", "b", "d"]))
    refused(done, "twice.parquet", "duplicate row: question_id b", "regenerate it")
    assert not (tmp_path / "made").exists()


def test_other_questions_are_refused(tmp_path):
    done = read_metrics(tmp_path, solve_table(tmp_path / "other.parquet", ["a", "b", "c", "e"]))
    refused(done, "identity", "'d' is missing", "the same questions")


def test_a_broken_table_is_refused(tmp_path):
    whole = solve_table(tmp_path / "whole.parquet", ["a", "b", "c", "d"]).read_bytes()
    for content in (whole[:-20], b"question_id,n_correct\n", b""):
        (tmp_path / "broken.parquet").write_bytes(content)
        done = read_metrics(tmp_path, tmp_path / "broken.parquet")
        refused(done, "broken.parquet: not a readable Parquet file", "regenerate it")
    pq.write_table(pa.table({"question_id": ["a"]}), tmp_path / "columns.parquet")
    done = read_metrics(tmp_path, tmp_path / "columns.parquet")
    refused(done, "columns.parquet: column(s) n_correct", "missing")
    refused(read_metrics(tmp_path, tmp_path / "absent.parquet"), "absent.parquet: no such file")
    assert not (tmp_path / "made").exists()


@pytest.fixture
def no_hub(tmp_path) -> dict[str, str]:
    """The environment of a machine whose hub refuses every connection."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    return {
        "HF_ENDPOINT": f"http://127.0.0.1:{port}",
        "HF_HOME": str(tmp_path / "hub"),
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }


def of_hub(name: str, folder: Path) -> list[str | Path]:
    """The arguments of a script that reads from the hub."""
    source = json.dumps({"kind": "hub", "repository": "nobody/nothing", "revision": "0" * 40})
    return {
        "raw_data": ["--source", source, "--train", folder / "a.jsonl", "--test", folder / "b"],
        "instructions": ["--source", source, "--n", "2", "--seed", "0", "--output", folder / "a"],
        "fetch_base": ["--repository", "nobody/nothing", "--revision", "main", "--output", folder],
    }[name]


@pytest.mark.parametrize("state", ["down", "switched off"])
@pytest.mark.parametrize("name", ["raw_data", "instructions", "fetch_base"])
def test_a_hub_that_cannot_be_reached(tmp_path, no_hub, name, state):
    env = no_hub | ({"HF_HUB_OFFLINE": "1"} if state == "switched off" else {})
    made = tmp_path / "made"
    done = script(name, *of_hub(name, made), env=env)
    refused(done, "nobody/nothing", "check the" if name != "fetch_base" else "It must be a folder")
    assert not made.exists() or not [path for path in made.rglob("*") if path.is_file()]


@contextlib.contextmanager
def small_disk(folder: Path):
    """A file system of 64 kB; what the machine does not allow skips the test."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root mounts a small file system")
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system may be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


GENERATED = json.dumps({"kind": "generated", "n_train": 2, "n_test": 2000, "seed": 0})


def make_many(made: Path, **options) -> subprocess.CompletedProcess[str]:
    """Few training questions and far more test questions than there is room for."""
    return script(
        *("raw_data", "--source", GENERATED),
        *("--train", made / "train.jsonl", "--test", made / "test.jsonl"),
        **options,
    )


def test_a_full_disk(tmp_path):
    with small_disk(tmp_path / "made") as made:
        refused(make_many(made), "test.jsonl: not written (No space left", "free some space")
        assert {path.name for path in made.iterdir()} <= {"train.jsonl"}


def test_a_file_that_may_not_grow(tmp_path):
    """As a quota does it; without being root."""
    made = tmp_path / "made"
    done = make_many(made, largest=20_000)
    refused(done, "test.jsonl: not written (File too large)", "free some space")
    assert {path.name for path in made.iterdir()} <= {"train.jsonl"}
    assert make_many(made).returncode == 0  # what a job that is given again finds


def test_a_table_that_may_not_grow_leaves_the_old_one(tmp_path):
    strategy = solve_table(tmp_path / "good.parquet", ["a", "b", "c", "d"])
    assert read_metrics(tmp_path, strategy).returncode == 0
    made = tmp_path / "made/metrics.parquet"
    before = made.read_bytes()
    refused(read_metrics(tmp_path, strategy, largest=1_000), "metrics.parquet: not written")
    assert made.read_bytes() == before
    assert [path.name for path in made.parent.iterdir()] == ["metrics.parquet"]


def test_a_full_disk_in_the_middle_of_sampling_keeps_the_finished_chunks(tmp_path):
    def responses(names: list[str]) -> pd.DataFrame:
        rows = [(n, 0, [1], "2", "2", "numeric", True, 1, "eos") for n in names]
        return pd.DataFrame(rows, columns=parquet.CONTRACTS["samples"].names)

    draw = Random(0)  # random names do not compress
    few, many = ["a", "b"], [draw.randbytes(16).hex() for _ in range(9_000)]
    with small_disk(tmp_path / "samples.parquet.work") as folder:
        checkpoint = SampleCheckpoint(folder)
        checkpoint.save(0, responses(few), batch_size=2)
        with pytest.raises(InputError, match=r"chunk-00001\.parquet: not written \(No space left"):
            checkpoint.save(1, responses(many), batch_size=2)
        resumed = SampleCheckpoint(folder)
        assert list(resumed.load(0, few, 1).question_id) == few
        assert resumed.load(1, many, 1) is None
        assert {path.name for path in folder.glob("*.parquet")} == {"chunk-00000.parquet"}
