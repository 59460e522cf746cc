"""Jobs that decode: parameters, input files for a tiny model, and interruptions."""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from helpers.tiny_models import model, tokenizer
from zerogap.io import parquet
from zerogap.io.resume import Journal

SAMPLING: dict[str, Any] = {
    "num_samples": 4, "temperature": 0.7, "top_p": 1.0, "max_new_tokens": 12, "dtype": "float32",
    "batch_size": 90, "batch_invariant": False,
}  # fmt: skip
BENCHMARK: dict[str, Any] = {
    "prompt": {
        "template": "Q: {question}\nA:", "target": " {rationale} The answer is {answer}.",
        "separator": "\n\n",
    },
    "stop": [],
    "extraction": "numeric",
}  # fmt: skip
_ADD = Journal.add


def stored_parts(monkeypatch: Any, at_most: int | None = None) -> list[str]:
    """The keys of the parts that jobs store from now on; jobs are interrupted after so many."""
    keys: list[str] = []

    def add(journal: Journal, key: str, value: Any) -> None:
        if len(keys) == at_most:
            raise KeyboardInterrupt
        _ADD(journal, key, value)
        keys.append(key)

    monkeypatch.setattr(Journal, "add", add)
    return keys


def write_model(folder: Path, seed: int = 0) -> Path:
    """A tiny Llama in float32 with its tokenizer."""
    model("llama", seed).float().save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def question_ids(num_questions: int) -> list[str]:
    """ "test-0000", "test-0001", …"""
    return [f"test-{number:04d}" for number in range(num_questions)]


def write_questions(folder: Path, num_questions: int, leaked: list[bool] | bool = False) -> Path:
    """Questions as the test split has them, with the gold answer 1."""
    table = pd.DataFrame(
        {
            "question_id": question_ids(num_questions),
            "question": [f"{number} and {number}?" for number in range(num_questions)],
            "rationale": "", "gold": "1", "leaked": leaked, "paraphrase": None,
        }
    )  # fmt: skip
    parquet.write(folder / "questions.parquet", table, "questions", {})
    return folder / "questions.parquet"


def write_exemplars(folder: Path) -> Path:
    """One exemplar."""
    (folder / "exemplars.json").write_text(json.dumps([{"question": "a", "target": "b"}]))
    return folder / "exemplars.json"


def write_inputs(
    folder: Path, num_questions: int, leaked: list[bool] | bool = False
) -> dict[str, Path]:
    """Model, questions and exemplars, by the names of the jobs' arguments."""
    return {
        "model": write_model(folder / "model"),
        "questions": write_questions(folder, num_questions, leaked),
        "exemplars": write_exemplars(folder),
    }


def write_greedy(folder: Path, trajectories: list[list[int]]) -> Path:
    """Greedy trajectories of the questions, without their texts."""
    table = pd.DataFrame(
        {
            "question_id": question_ids(len(trajectories)), "token_ids": trajectories, "text": "",
            "answer": None, "extractor": None, "correct": False,
            "entropy": [[0.1] * len(tokens) for tokens in trajectories], "finish_reason": "eos",
        }
    )  # fmt: skip
    parquet.write(folder / "greedy.parquet", table, "greedy", {})
    return folder / "greedy.parquet"
