"""One question of a run, with its responses: what a reader wants to see without pandas."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

from zerogap.analysis.rail import Tokens, tokens_on_rail
from zerogap.errors import InputError, listed
from zerogap.families.folders import read_tokenizer
from zerogap.io import parquet

Span = tuple[str, bool]  # a piece of a response, and whether it is on the rail
Text = tuple[bool, list[Span]]  # whether a response is correct, and its pieces


def responses(
    folder: Path, question: Mapping[str, Any], trajectory: Tokens, n: int, num_texts: int
) -> Iterator[tuple[str, pd.Series, list[Text]]]:
    """The responses to a question: the clean model's, then those of every strategy.

    `folder` and `question` are as `find` returns them; the texts are those of `spans`.

    Yields:
        The strategy, or "clean"; whether each of its responses is correct; the first texts.

    Raises:
        InputError: the model's tokenizer is missing or damaged.
    """
    tokenizer = read_tokenizer(folder / "model")
    if tokenizer is None:
        raise InputError(f"{folder}/model/tokenizer.json: does not exist; copy the model's there")
    for name, path in _sample_files(folder, question).items():
        rows = _rows(path, question["question_id"])
        yield name, rows["correct"], marked_texts(tokenizer, trajectory, rows.head(num_texts), n)


def greedy(folder: Path, question: Mapping[str, Any]) -> pd.Series:
    """The row of the contaminated model's greedy response; InputError if it has none."""
    rows = _rows(folder / "greedy.parquet", question["question_id"])
    if rows.empty:
        raise InputError(
            f"{folder}/greedy.parquet: made from other questions; run the workflow again first"
        )
    return rows.iloc[0]


def find(
    run: Path, question_id: str, model: str | None, benchmark: str | None
) -> tuple[Path, dict[str, Any]]:
    """The folder of the first setting that has a question, and its row of the questions.

    `run` is the folder ``results/<run>``; model and benchmark are any if None.

    Raises:
        InputError: the run has no trajectories yet, or not this model, benchmark or question.
    """
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
    raise InputError(f"{run}: has no question {question_id!r}; there are {listed(ids)}")


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


def marked_texts(tokenizer: Any, trajectory: Tokens, samples: pd.DataFrame, n: int) -> list[Text]:
    """The responses of a `samples` table; other arguments as of `spans`."""
    return [
        (bool(correct), spans(tokenizer, trajectory, list(map(int, tokens)), n))
        for correct, tokens in zip(samples["correct"], samples["token_ids"], strict=True)
    ]


def spans(tokenizer: Any, trajectory: Tokens, response: Tokens, n: int) -> list[Span]:
    """The text of a response in pieces, each on the rail or not.

    The tokenizer is one of `tokenizers` or of `transformers`; `n` tokens must match the trajectory,
    and trajectory and response include their end tokens.
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
