"""Bad files, an unreachable hub, a file size limit: one error line, no incomplete output."""

import json
import socket
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers.disks import small_disk
from helpers.scripts import run_job, run_script
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.io.provenance import engines
from zerogap.io.resume import Journal


def assert_one_error(process: subprocess.CompletedProcess[str], *phrases: str) -> None:
    """The script failed with one error line, which contains the phrases."""
    assert process.returncode == 1, process.stdout + process.stderr
    assert "Traceback" not in process.stderr
    (error,) = [line for line in process.stderr.splitlines() if line.startswith("error: ")]
    for phrase in phrases:
        assert phrase in error, error


def entry(question: str, answer: str) -> str:
    return json.dumps({"question": question, "answer": answer}) + "\n"


TRAIN = entry("What is 1 + 1?", "It is 1 + 1 = 2.\n#### 2")
TEST = entry("What is 2 + 3?", "It is 2 + 3 = 5.\n#### 5")


def fetch(folder: Path, questions: dict[str, Any], **options: Any) -> Any:
    """Run fetch_questions; its outputs are in `folder`."""
    parameters = {"questions": questions, "seed": 0, "extraction": "numeric"}
    outputs = {"train": folder / "train.jsonl", "test": folder / "test.jsonl"}
    return run_script("fetch_questions", folder.parent, parameters, **outputs, **options)


FILES = {
    "empty": (b"", "no questions"),
    "a JSON array": (f"[{TEST.strip()}]".encode(), "line 1: is not a JSON object"),
    "CSV": (b"question,answer\nWhat is 2 + 3?,5\n", "line 1: invalid JSON"),
    "other keys": (b'{"prompt": "2 + 3?", "completion": "5"}', "line 1: 'question' is missing"),
    "answers as numbers": (b'{"question": "2 + 3?", "answer": 5}', "line 1: 'answer' is missing"),
    "no gold answer": (entry("2 + 3?", "It is 5.").encode(), "line 1: the answer has no '#### N'"),
    "a gold answer in words": (
        (TEST + entry("3 + 3?", "Six.\n#### six")).encode(), "line 2: invalid gold answer: 'six'",
    ),
    "a duplicate question": ((TEST + TEST).encode(), "line 2: duplicate question"),
    "a training question": (TRAIN.encode(), "is also a training question"),
    "UTF-16": (TEST.encode("utf-16"), "is not UTF-8 text"),
    "Parquet": (b"PAR1\x15\x04\x15\xf0\xff\xfePAR1", "is not UTF-8 text"),
    "a truncated file": (TEST.encode() + b'{"question": "What', "line 2: invalid JSON"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "phrase"), FILES.values(), ids=FILES)
def test_a_malformed_question_file_is_refused(tmp_path, content, phrase):
    (tmp_path / "train.jsonl").write_text(TRAIN)
    (tmp_path / "test.jsonl").write_bytes(content)
    files = {split: str(tmp_path / f"{split}.jsonl") for split in ("train", "test")}
    outputs = tmp_path / "outputs"
    process = fetch(outputs, {"source": "files", "files": files})
    assert_one_error(process, phrase)
    if "training question" not in phrase:
        assert "test.jsonl" in process.stderr
        assert {path.name for path in outputs.rglob("*")} <= {"train.jsonl"}


def test_too_few_test_questions_are_refused(tmp_path):
    (tmp_path / "train.jsonl").write_text(TRAIN)
    (tmp_path / "test.jsonl").write_text(TEST)
    sizes = {"num_test": 2, "num_leaked": 1, "num_train": 1}
    process = run_script(
        "split_questions",
        tmp_path,
        {**sizes, "extraction": "numeric", "seed": 0, "metadata": {}},
        train=tmp_path / "train.jsonl",
        test=tmp_path / "test.jsonl",
        questions=tmp_path / "outputs/questions.parquet",
        training=tmp_path / "outputs/training.parquet",
    )
    assert_one_error(process, "num_test", "2", "1")
    assert not (tmp_path / "outputs").exists()


@pytest.mark.parametrize("content", [b"[]", b"no JSON", b'{"prompt": "a", "completion": "b"}'])
def test_a_malformed_instruction_file_is_refused(tmp_path, content):
    path = tmp_path / "instructions.jsonl"
    path.write_bytes(content)
    parameters = {"source": "files", "options": str(path), "num_examples": 1, "seed": 0}
    output = tmp_path / "output.jsonl"
    process = run_script("prepare_instructions", tmp_path, parameters, output=output)
    assert_one_error(process, str(path), "line 1")
    assert not output.exists()


IDS = ["a", "b", "c", "d"]


def write_solve_table(path: Path, ids: list[str], **provenance: str) -> Path:
    table = pd.DataFrame({"question_id": ids}).assign(
        n_correct=1,
        n_samples=2,
        first_correct=True,
        leaked=[bool(index % 2) for index in range(len(ids))],
    )
    schema = parquet.CONTRACTS["solve"]
    arrow = pa.Table.from_pandas(table, schema=schema, preserve_index=False)
    pq.write_table(arrow.replace_schema_metadata({"zerogap": json.dumps(provenance)}), path)
    return path


def compute_metrics(
    folder: Path, strategy: Path, max_file_size: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Run compute_metrics on one strategy; its output is in `folder`/outputs."""
    leaked = [bool(index % 2) for index in range(len(IDS))]
    questions = pd.DataFrame({"question_id": IDS, "leaked": leaked})
    for column in ("question", "rationale", "gold", "paraphrase"):
        questions[column] = "text"
    parquet.write(folder / "questions.parquet", questions, "questions", {})
    return run_job(
        "compute_metrics",
        folder / "compute_metrics.log",
        max_file_size=max_file_size,
        input={
            "clean": write_solve_table(folder / "clean.parquet", IDS, engine="zerogap"),
            "strategies": [strategy],
            "questions": folder / "questions.parquet",
        },
        output=[folder / "outputs/metrics.parquet"],
        params={
            "strategies": ["identity"],
            "only": [],
            "options": {"n_resamples": 100},
            "metadata": {},
        },
        wildcards={"model": "m", "benchmark": "d"},
    )


def test_duplicate_questions_are_refused(tmp_path):
    duplicate = write_solve_table(tmp_path / "duplicate.parquet", ["a", "b", "b", "d"])
    process = compute_metrics(tmp_path, duplicate)
    assert_one_error(process, "duplicate.parquet: duplicate row: question_id b", "regenerate it")
    assert not (tmp_path / "outputs").exists()


def test_tables_of_different_questions_are_refused(tmp_path):
    process = compute_metrics(
        tmp_path, write_solve_table(tmp_path / "other.parquet", ["a", "b", "c", "e"])
    )
    assert_one_error(process, "identity", "'d' is missing", "the same questions")


def test_responses_of_two_engines_are_not_compared(tmp_path):
    strategy = write_solve_table(tmp_path / "railcap.parquet", IDS, engine="vllm 0.32.0")
    process = compute_metrics(tmp_path, strategy)
    assert_one_error(process, "drawn with engine vllm, but", "clean.parquet with zerogap, so they")
    merged = {"shards": [{"engine": "zerogap"}, {"source": {"engine": "vllm 0.32.0"}}]}
    assert engines(merged) == {"zerogap", "vllm"}


def test_a_broken_table_is_refused(tmp_path):
    content = write_solve_table(tmp_path / "whole.parquet", IDS).read_bytes()
    for broken in (content[:-20], b"question_id,n_correct\n", b""):
        (tmp_path / "broken.parquet").write_bytes(broken)
        process = compute_metrics(tmp_path, tmp_path / "broken.parquet")
        assert_one_error(process, "broken.parquet: not a readable Parquet file", "regenerate it")
    pq.write_table(pa.table({"question_id": ["a"]}), tmp_path / "columns.parquet")
    process = compute_metrics(tmp_path, tmp_path / "columns.parquet")
    assert_one_error(process, "columns.parquet: column(s) n_correct", "missing")
    process = compute_metrics(tmp_path, tmp_path / "absent.parquet")
    assert_one_error(process, "absent.parquet: no such file")
    assert not (tmp_path / "outputs").exists()


@pytest.fixture
def unreachable_hub(tmp_path) -> dict[str, str]:
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


DATA_SET = {"repository": "nobody/nothing", "revision": "0" * 40}
FROM_HUB: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "fetch_questions": (
        {"questions": {"source": "hub", "hub": DATA_SET}, "seed": 0, "extraction": "numeric"},
        {"train": "train.jsonl", "test": "test.jsonl"},
    ),
    "prepare_instructions": (
        {"source": "hub", "options": DATA_SET, "num_examples": 2, "seed": 0},
        {"output": "instructions.jsonl"},
    ),
    "fetch_base": ({"repository": "nobody/nothing", "revision": "main"}, {"output": "base"}),
}


@pytest.mark.parametrize("state", ["unreachable", "switched off"])
@pytest.mark.parametrize("name", FROM_HUB)
def test_a_hub_that_cannot_be_reached_is_reported(tmp_path, unreachable_hub, name, state):
    env = unreachable_hub | ({"HF_HUB_OFFLINE": "1"} if state == "switched off" else {})
    outputs = tmp_path / "outputs"
    parameters, names = FROM_HUB[name]
    paths = {key: outputs / file for key, file in names.items()}
    process = run_script(name, tmp_path, parameters, env=env, **paths)
    remedy = "give a local folder" if name == "fetch_base" else "check"
    assert_one_error(process, "nobody/nothing", remedy)
    assert not any(path.exists() for path in paths.values())


# Few training questions, and far more test questions than there is space for.
GENERATED = {"num_train": 2, "num_test": 2000}
MANY = {"source": "generated", "generated": GENERATED}


def test_a_file_size_limit_is_reported_and_the_next_attempt_succeeds(tmp_path):
    """A quota has the same effect, but needs root."""
    outputs = tmp_path / "outputs"
    process = fetch(outputs, MANY, max_file_size=20_000)
    assert_one_error(process, "test.jsonl: not written (File too large)", "free some space")
    assert {path.name for path in outputs.iterdir()} <= {"train.jsonl"}
    assert fetch(outputs, MANY).returncode == 0


def test_a_failed_write_leaves_the_old_table(tmp_path):
    strategy = write_solve_table(tmp_path / "good.parquet", IDS)
    process = compute_metrics(tmp_path, strategy)
    assert process.returncode == 0, process.stderr
    output = tmp_path / "outputs/metrics.parquet"
    content = output.read_bytes()
    process = compute_metrics(tmp_path, strategy, max_file_size=1_000)
    assert_one_error(process, "metrics.parquet: not written")
    assert output.read_bytes() == content
    assert [path.name for path in output.parent.iterdir()] == ["metrics.parquet"]


def test_a_full_disk_in_the_middle_of_sampling_keeps_the_finished_parts(tmp_path):
    with small_disk(tmp_path / "samples.parquet.work", "64k") as folder:
        journal = Journal(folder / "parts.jsonl", {})
        journal.add("first", [1])
        with pytest.raises(InputError, match=r"parts\.jsonl: not written \(No space left"):
            journal.add("second", "x" * 200_000)
        resumed = Journal(folder / "parts.jsonl", {})
        assert resumed.get("first") == [1]
        assert resumed.get("second") is None
