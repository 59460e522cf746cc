"""One question of a run, with its responses: what a reader wants to see without pandas."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
from tokenizers import Tokenizer

from zerogap.analysis.rail import tokens_on_rail
from zerogap.errors import InputError

Span = tuple[str, bool]  # a piece of a response, and whether it is on the rail
MAX_NAMED = 5  # in an error


@dataclass(frozen=True)
class Responses:
    """The responses to a question under one strategy.

    Attributes:
        name: Strategy, or ``clean``.
        n_correct: Number of correct responses.
        n_samples: Number of responses.
        texts: The first responses: whether each is correct, and its pieces.
    """

    name: str
    n_correct: int
    n_samples: int
    texts: list[tuple[bool, list[Span]]]


@dataclass(frozen=True)
class OneQuestion:
    """A question of a run.

    Attributes:
        model: Key of the model.
        benchmark: Key of the benchmark.
        question: Its row of the `questions` table.
        greedy: Text of the contaminated model's greedy response.
        greedy_correct: Whether that response is correct.
        responses: The clean model's, then those of every strategy.
    """

    model: str
    benchmark: str
    question: dict[str, Any]
    greedy: str
    greedy_correct: bool
    responses: list[Responses]


def read_question(
    run: Path,
    question_id: str,
    *,
    model: str | None = None,
    benchmark: str | None = None,
    num_responses: int = 3,
    n: int = 4,
) -> OneQuestion:
    """Read a question and its responses.

    Args:
        run: Folder of the run, ``results/<run>``.
        question_id: The question.
        model: Key of the model; the first by name if None.
        benchmark: Key of the benchmark; the first by name that has the question if None.
        num_responses: Responses to show per strategy.
        n: How many tokens must match the greedy trajectory.

    Raises:
        InputError: The run has no trajectories yet, or not this model, benchmark or question.
    """
    if not run.is_dir():
        runs = sorted(data.parent.name for data in run.parent.glob("*/data"))
        raise InputError(f"{run}: no such folder; the runs are {', '.join(runs) or '(none yet)'}")
    greedy_files = sorted(run.glob("*/*/greedy.parquet"))
    decoded = [path.parent for path in greedy_files if (run / "data" / path.parent.name).is_dir()]
    if not decoded:
        raise InputError(f"{run}: has no greedy trajectories; name another run with --run")
    folders = [
        folder
        for folder in decoded
        if model in (None, folder.parent.name) and benchmark in (None, folder.name)
    ]
    if not folders:
        raise InputError(
            f"{run}: has no responses of model {model or '(any)'} and benchmark "
            f"{benchmark or '(any)'}; there are {', '.join(map(_setting, decoded))}"
        )
    for folder in folders:
        rows = _rows(run / "data" / folder.name / "questions.parquet", question_id)
        if len(rows):
            break
    else:
        raise InputError(f"{run}: has no question {question_id!r}; there are {_some(run, folders)}")
    greedy = _rows(folder / "greedy.parquet", question_id).iloc[0]
    trajectory = [int(token) for token in greedy.token_ids]
    tokenizer = Tokenizer.from_file(str(folder / "model" / "tokenizer.json"))
    responses = [
        _responses(name, path, question_id, tokenizer, trajectory, num_responses, n)
        for name, path in _sample_files(folder, rows.iloc[0]).items()
    ]
    return OneQuestion(
        model=folder.parent.name,
        benchmark=folder.name,
        question={str(name): value for name, value in rows.iloc[0].items()},
        greedy=greedy.text,
        greedy_correct=bool(greedy.correct),
        responses=responses,
    )


def _rows(path: Path, question_id: str) -> pd.DataFrame:
    table: pd.DataFrame = pq.read_table(
        path, filters=[("question_id", "==", question_id)]
    ).to_pandas()
    return table


def _sample_files(folder: Path, question: "pd.Series[Any]") -> dict[str, Path]:
    """The clean model's first batch, if there is one, and the samples of every strategy."""
    strategies = {path.parent.name: path for path in folder.glob("cells/*/samples.parquet")}
    ordered = sorted(strategies.items(), key=lambda item: (item[0] != "identity", item[0]))
    clean = _clean_samples(folder, question)
    return dict([("clean", clean), *ordered] if clean else ordered)


def _clean_samples(folder: Path, question: "pd.Series[Any]") -> Path | None:
    """The samples of the benchmark's clean model, if there are any.

    A benchmark with the questions of another one shares the clean model of that benchmark, its
    owner. Ids are positions in a file, so several owners may have this one, but not its question.
    """
    files = folder.parent.glob("clean_*/cells/batch1/samples.parquet")
    owners = {path.parents[2].name.removeprefix("clean_"): path for path in files}
    for owner, path in sorted(owners.items(), key=lambda item: (item[0] != folder.name, item[0])):
        split = folder.parents[1] / "data" / owner / "split.parquet"
        if question["question"] in list(_rows(split, question["question_id"])["question"]):
            return path
    return None


def _responses(
    name: str,
    path: Path,
    question_id: str,
    tokenizer: Tokenizer,
    trajectory: list[int],
    num_responses: int,
    n: int,
) -> Responses:
    rows = _rows(path, question_id)
    first = rows.head(num_responses)
    texts = [
        (bool(correct), _spans(tokenizer, trajectory, [int(token) for token in tokens], n))
        for correct, tokens in zip(first["correct"], first["token_ids"], strict=True)
    ]
    return Responses(name, int(rows["correct"].sum()), len(rows), texts)


def _spans(tokenizer: Tokenizer, trajectory: list[int], tokens: list[int], n: int) -> list[Span]:
    """The text of a response in pieces, each on the rail or not."""
    spans: list[Span] = []
    marks = tokens_on_rail(trajectory, tokens, n)
    written = ""
    for end, mark in enumerate(marks, start=1):
        if end < len(marks) and marks[end] == mark:
            continue
        # From the first token: pieces of a text depend on what precedes them.
        text = tokenizer.decode(tokens[:end])
        spans.append((text[len(written) :], mark))
        written = text
    return spans


def _setting(folder: Path) -> str:
    return f"{folder.parent.name}/{folder.name}"


def _some(run: Path, folders: list[Path]) -> str:
    """The first questions of the first benchmark."""
    path = run / "data" / folders[0].name / "questions.parquet"
    ids = pq.read_table(path, columns=["question_id"])["question_id"].to_pylist()
    return ", ".join(ids[:MAX_NAMED]) + ", …" * (len(ids) > MAX_NAMED)
