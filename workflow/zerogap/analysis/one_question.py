"""One question of a run, with its responses: what a reader wants to see without pandas."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

import pandas as pd
import pyarrow.parquet as pq
from tokenizers import Tokenizer

from zerogap.analysis.rail import Tokens, tokens_on_rail
from zerogap.errors import InputError
from zerogap.io import parquet

Span = tuple[str, bool]  # a piece of a response, and whether it is on the rail
MAX_NAMED = 5  # in an error


class SomeTokenizer(Protocol):
    """A tokenizer of `tokenizers` or of `transformers`."""

    def decode(self, ids: list[int], /, *, skip_special_tokens: bool) -> Any:
        """The text of tokens."""


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
    folder, question = _find(run, question_id, model, benchmark)
    greedy = _rows(folder / "greedy.parquet", question_id).iloc[0]
    tokenizer = Tokenizer.from_file(str(folder / "model" / "tokenizer.json"))
    responses = []
    for name, path in _sample_files(folder, question).items():
        rows = _rows(path, question_id)
        first = rows.head(num_responses)
        texts = [
            (bool(correct), spans(tokenizer, list(greedy.token_ids), list(tokens), n))
            for correct, tokens in zip(first["correct"], first["token_ids"], strict=True)
        ]
        responses.append(Responses(name, int(rows["correct"].sum()), len(rows), texts))
    return OneQuestion(
        folder.parent.name, folder.name, question, greedy.text, bool(greedy.correct), responses
    )


def _find(
    run: Path, question_id: str, model: str | None, benchmark: str | None
) -> tuple[Path, dict[str, Any]]:
    """The folder of the first setting that has the question, and its row of the questions."""
    if not run.is_dir():
        runs = sorted(data.parent.name for data in run.parent.glob("*/data"))
        raise InputError(f"{run}: no such folder; the runs are {', '.join(runs) or '(none yet)'}")
    questions = {  # of each setting that has trajectories
        greedy.parent: run / "data" / greedy.parent.name / "questions.parquet"
        for greedy in sorted(run.glob("*/*/greedy.parquet"))
        if (run / "data" / greedy.parent.name).is_dir()
    }
    if not questions:
        raise InputError(f"{run}: has no greedy trajectories; name another run with --run")
    chosen = {
        folder: path
        for folder, path in questions.items()
        if model in (None, folder.parent.name) and benchmark in (None, folder.name)
    }
    if not chosen:
        settings = ", ".join(f"{folder.parent.name}/{folder.name}" for folder in questions)
        raise InputError(
            f"{run}: has no responses of model {model or '(any)'} and benchmark "
            f"{benchmark or '(any)'}; there are {settings}"
        )
    for folder, path in chosen.items():
        for row in _rows(path, question_id).to_dict("records"):
            return folder, {str(name): value for name, value in row.items()}
    path = next(iter(chosen.values()))
    ids = pq.read_table(path, columns=["question_id"])["question_id"].to_pylist()
    some = ", ".join(ids[:MAX_NAMED]) + ", …" * (len(ids) > MAX_NAMED)
    raise InputError(f"{run}: has no question {question_id!r}; there are {some}")


def _rows(path: Path, question_id: str) -> pd.DataFrame:
    parquet.check_place(path)
    return pd.read_parquet(path, filters=[("question_id", "==", question_id)])


def _sample_files(folder: Path, question: Mapping[str, Any]) -> dict[str, Path]:
    """The clean model's first batch, if there is one, and the samples of every strategy.

    A benchmark with the questions of another one shares the clean model of that benchmark, its
    owner. Ids are positions in a file, so several owners may have this one, but not its question.
    """
    files = {}
    batches = folder.parent.glob("clean_*/cells/batch1/samples.parquet")
    owners = {path.parents[2].name.removeprefix("clean_"): path for path in batches}
    for owner in sorted(owners, key=lambda owner: (owner != folder.name, owner)):
        split = _rows(folder.parents[1] / "data" / owner / "split.parquet", question["question_id"])
        if question["question"] in list(split["question"]):
            files["clean"] = owners[owner]
            break
    strategies = {path.parent.name: path for path in folder.glob("cells/*/samples.parquet")}
    names = sorted(strategies, key=lambda name: (name != "identity", name))
    return files | {name: strategies[name] for name in names}


def spans(tokenizer: SomeTokenizer, trajectory: Tokens, response: Tokens, n: int) -> list[Span]:
    """The text of a response in pieces, each on the rail or not.

    Args:
        tokenizer: the model's.
        trajectory: the greedy trajectory of the question, end token included.
        response: the tokens of the response, end token included.
        n: how many tokens must match the trajectory.
    """
    pieces: list[Span] = []
    end, written = 0, ""
    for mark, run in groupby(tokens_on_rail(trajectory, response, n)):
        end += len(list(run))
        # From the first token: pieces of a text depend on what precedes them.
        text: str = tokenizer.decode(list(response[:end]), skip_special_tokens=True)
        if end < len(response):
            text = text.rstrip("\ufffd")  # a part of a character, which is whole in the next piece
        pieces.append((text[len(written) :], mark))
        written = text
    return pieces
