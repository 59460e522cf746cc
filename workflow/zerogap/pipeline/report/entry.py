"""A table or figure of the report: how it is presented, and what it is made of."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypedDict, TypeVar

import pandas as pd
import yaml

from zerogap.config import Config
from zerogap.io import parquet
from zerogap.metrics.same_questions import with_leaked_of

T = TypeVar("T")


class File(TypedDict):
    """An input file, as JSON has it.

    Attributes:
        path: The file.
        contract: What a Parquet file must be (:mod:`zerogap.io.parquet`); empty for other files.
        questions: Of a `solve` table, the questions that say which of them are leaked.
    """

    path: str
    contract: str
    questions: str


def file(path: str, contract: str = "", questions: str = "") -> File:
    """An input file; arguments as the attributes of `File`."""
    return {"path": path, "contract": contract, "questions": questions}


def read(file: File, columns: Collection[str] | None = None) -> pd.DataFrame:
    """The table in a Parquet file, or some of its columns next to the key.

    Raises:
        InputError: The file is missing, invalid or not where it was made.
    """
    table = parquet.read_of_run(file["path"], file["contract"], columns)
    if not file["questions"]:
        return table
    return with_leaked_of(parquet.read_of_run(file["questions"], "questions"), table)


def read_all(part: Any) -> Any:
    """A value of `Source.locate`, with a table for every Parquet file in its dictionaries."""
    if not isinstance(part, Mapping):
        return part
    if part.get("contract"):
        return read(file(**part))
    return {key: read_all(value) for key, value in part.items()}


@dataclass(frozen=True)
class Source(Generic[T]):
    """What a table or figure is made of; a table or figure is itself one, made of others.

    Snakemake's own process locates the files and hands them to the job, which reads them.

    Attributes:
        locate: Files and values of the configuration, as JSON has them: the job may run another
            version of Python, which cannot read a pickled object.
        read: The value, from what `locate` returned.
    """

    locate: Callable[[Config], Any]
    read: Callable[[Any], T]

    def files(self, config: Config) -> list[str]:
        """The input files, without duplicates."""
        return list(dict.fromkeys(_files(self.locate(config))))


@dataclass(frozen=True)
class Entry(Generic[T]):
    """A table or a figure.

    Attributes:
        source: What builds it from the files of a run.
        shows: What it shows, in the report's overview.
        caption: What it shows and how to read it, plain text with the paper's symbols.
        section: Heading in the report's overview; Snakemake sorts them by name.
        number: Its number in the paper, if it has one.
    """

    source: Source[T]
    shows: str
    caption: str
    section: str
    number: str = ""

    def title(self, kind: str) -> str:
        """Heading: "Table 3: SA-PPG in every setting", without a number what it shows."""
        shows = self.shows[0].upper() + self.shows[1:]
        return f"{kind} {self.number}: {shows}" if self.number else shows

    def rst(self, kind: str) -> str:
        """Title and caption in reStructuredText."""
        return f"**{self.title(kind)}.** {self.caption}".replace("|", r"\|")


def entries(words: Path, sources: Mapping[str, Source[T]]) -> dict[str, Entry[T]]:
    """The entries of sources by name, with what a YAML file says of each."""
    values = yaml.safe_load(words.read_text(encoding="utf-8"))
    return {name: Entry(source, **values[name]) for name, source in sources.items()}


def value(locate: Callable[[Config], T]) -> Source[T]:
    """A value of the configuration itself."""
    return Source(locate, lambda located: located)


def made_of(build: Callable[..., T], *sources: Source[Any]) -> Source[T]:
    """What a function makes of other sources, one per parameter."""
    return Source(
        lambda config: [source.locate(config) for source in sources],
        lambda parts: build(*(s.read(part) for s, part in zip(sources, parts, strict=True))),
    )


def _files(part: Any) -> Iterator[str]:
    if isinstance(part, Mapping) and "contract" in part:
        yield from filter(None, (part["questions"], part["path"]))
    elif isinstance(part, Mapping | list):
        for inner in part.values() if isinstance(part, Mapping) else part:
            yield from _files(inner)
