"""A table or figure of the report: how it is presented, and what it is made of."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

from zerogap.config import Config

# Sections of the report, numbered because Snakemake sorts them by name.
PAPER, VS_PAPER = "1. The paper's", "2. Compared with the paper"
BEYOND, CHECKS = "3. Beyond the paper", "4. Checks"

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")


@dataclass(frozen=True)
class Source(Generic[T]):
    """What a table or figure is made of; a table or figure is itself one, made of others.

    Snakemake's own process locates the files and hands them to the job, which reads them. The job
    may run another version of Python, which cannot read a pickled path, so it gets strings.

    Attributes:
        locate: Values of the configuration and paths, in lists and dictionaries as JSON has them.
            Every `Path` among them is an input file of the job.
        read: The value, from what `locate` returned, with strings for paths.
    """

    locate: Callable[[Config], Any]
    read: Callable[[Any], T]

    def located(self, config: Config) -> Any:
        """Paths and values for a job, as JSON has them."""
        return _with_text_paths(self.locate(config))

    def files(self, config: Config) -> list[str]:
        """The input files, without duplicates."""
        return list(dict.fromkeys(map(str, _paths(self.locate(config)))))


@dataclass(frozen=True)
class Entry(Generic[T]):
    """A table or a figure.

    Attributes:
        source: What builds it from the files of a run.
        shows: What it shows, in the report's overview.
        caption: What it shows and how to read it, plain text with the paper's symbols.
        number: Its number in the paper, if it has one.
        section: Heading in the report's overview.
        mem_mb: Memory of the job.
    """

    source: Source[T]
    shows: str
    caption: str
    number: str = ""
    section: str = BEYOND
    mem_mb: int = 2000

    def title(self, kind: str) -> str:
        """Heading: "Table 3: SA-PPG in every setting", without a number what it shows."""
        shows = self.shows[0].upper() + self.shows[1:]
        return f"{kind} {self.number}: {shows}" if self.number else shows

    @property
    def text(self) -> str:
        """The caption in one line."""
        return " ".join(self.caption.split())

    def rst(self, kind: str) -> str:
        """Title and caption in reStructuredText."""
        return f"**{self.title(kind)}.** {self.text}".replace("|", r"\|")


def value(locate: Callable[[Config], T]) -> Source[T]:
    """A value of the configuration itself."""
    return Source(locate, lambda located: located)


@overload
def made_of(build: Callable[[A], T], a: Source[A], /) -> Source[T]: ...
@overload
def made_of(build: Callable[[A, B], T], a: Source[A], b: Source[B], /) -> Source[T]: ...
@overload
def made_of(
    build: Callable[[A, B, C], T], a: Source[A], b: Source[B], c: Source[C], /
) -> Source[T]: ...
@overload
def made_of(
    build: Callable[[A, B, C, D], T], a: Source[A], b: Source[B], c: Source[C], d: Source[D], /
) -> Source[T]: ...
@overload
def made_of(
    build: Callable[[A, B, C, D, E], T],
    a: Source[A],
    b: Source[B],
    c: Source[C],
    d: Source[D],
    e: Source[E],
    /,
) -> Source[T]: ...
def made_of(build: Callable[..., T], /, *sources: Source[Any]) -> Source[T]:
    """What a function makes of other sources, one per parameter."""
    return Source(
        lambda config: [source.locate(config) for source in sources],
        lambda located: build(
            *(source.read(part) for source, part in zip(sources, located, strict=True))
        ),
    )


def _paths(located: Any) -> Iterator[Path]:
    if isinstance(located, Path):
        yield located
    elif isinstance(located, Mapping | list):
        for part in located.values() if isinstance(located, Mapping) else located:
            yield from _paths(part)


def _with_text_paths(located: Any) -> Any:
    if isinstance(located, Mapping):
        return {key: _with_text_paths(part) for key, part in located.items()}
    if isinstance(located, list | tuple):
        return [_with_text_paths(part) for part in located]
    return str(located) if isinstance(located, Path) else located
