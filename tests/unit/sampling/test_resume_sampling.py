"""A sampling job killed outright at several points ends with the bytes of an undisturbed one."""

import json
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

import merge_shards
from helpers.paths import ROOT
from helpers.tiny_models import model, tokenizer
from zerogap.io import parquet
from zerogap.sampling.checkpoint import Parts

QUESTIONS = 420  # five parts
DECODING = {
    "samples": 3, "temperature": 0.7, "top_p": 1.0, "max_new_tokens": 12, "stop": [],
    "dtype": "float32", "batch_rows": 90, "exact": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    model("llama").float().save_pretrained(folder / "model")
    tokenizer().save_pretrained(folder / "model")
    names = [f"test-{i:04d}" for i in range(QUESTIONS)]
    questions = pd.DataFrame(
        {
            "question_id": names, "question": [f"{i} and {i}?" for i in range(QUESTIONS)],
            "rationale": "", "gold": "1", "leaked": False, "paraphrase": None,
        }
    )  # fmt: skip
    parquet.write(folder / "questions.parquet", questions, "questions", {})
    greedy = pd.DataFrame(
        {
            "question_id": names, "token_ids": [[1, 2, 3]] * QUESTIONS, "text": "", "answer": None,
            "extractor": None, "correct": False, "entropy": [[0.1] * 3] * QUESTIONS,
            "finish_reason": "eos",
        }
    )  # fmt: skip
    parquet.write(folder / "greedy.parquet", greedy, "greedy", {})
    (folder / "exemplars.json").write_text(json.dumps([{"question": "a", "target": "b"}]))
    return folder


def start(inputs, folder, *more):
    command = [
        sys.executable, "workflow/scripts/sample_responses.py",
        "--model", inputs / "model", "--questions", inputs / "questions.parquet",
        "--exemplars", inputs / "exemplars.json", "--greedy", inputs / "greedy.parquet",
        "--strategy", json.dumps({"class": "railcap", "parameters": {"n": 1}}),
        "--decoding", json.dumps(DECODING), "--seed", "5", "--stream", "strategies",
        "--samples", folder / "samples.parquet", "--solve", folder / "solve.parquet", *more,
    ]  # fmt: skip
    return subprocess.Popen(
        list(map(str, command)),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": "workflow", "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"},
    )


@pytest.mark.slow
def test_killed_at_several_points_the_bytes_are_the_same(inputs, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    undisturbed = start(inputs, whole)
    parts = killed / "samples.parquet.parts"
    for finished in (0, 1, 3):
        job = start(inputs, killed)
        while len(list(parts.glob("part-*.parquet"))) <= finished and job.poll() is None:
            time.sleep(0.005)
        job.send_signal(signal.SIGKILL)
        assert job.wait() == -signal.SIGKILL, job.stderr.read()
        assert not (killed / "samples.parquet").exists()
        assert finished < len(list(parts.glob("part-*.parquet"))) < 5
    assert undisturbed.wait() == 0, undisturbed.stderr.read()
    second = start(inputs, killed)
    assert second.wait() == 0, second.stderr.read()
    for name in ("samples.parquet", "solve.parquet"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
    assert not parts.exists()


@pytest.mark.slow
def test_while_another_process_makes_it_a_job_is_refused(inputs, tmp_path):
    with Parts(tmp_path / "samples.parquet", {}):
        second = start(inputs, tmp_path)
        assert second.wait() == 1
    assert "samples.parquet: another process is making it" in second.stderr.read()


@pytest.mark.slow
def test_shards_put_together_are_the_whole(inputs, tmp_path):
    whole, apart = start(inputs, tmp_path / "whole"), []
    for number in range(2):
        folder = tmp_path / str(number)
        apart.append(start(inputs, folder, "--shard", str(number), "2"))
    for job in (whole, *apart):
        assert job.wait() == 0, job.stderr.read()
    merge_shards.main(
        [
            *("--samples", *(str(tmp_path / name / "samples.parquet") for name in "01")),
            *("--solve", *(str(tmp_path / name / "solve.parquet") for name in "01")),
            *("--questions", str(inputs / "questions.parquet")),
            *("--merged-samples", str(tmp_path / "samples.parquet")),
            *("--merged-solve", str(tmp_path / "solve.parquet")),
        ]
    )
    for name in ("samples.parquet", "solve.parquet"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
