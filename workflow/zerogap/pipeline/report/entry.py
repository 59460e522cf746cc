"""How a table or figure is presented in the report."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from zerogap.pipeline.report.source import Source

# Sections of the report, numbered because Snakemake sorts them by name.
PAPER, VS_PAPER = "1. The paper's", "2. Compared with the paper"
BEYOND, CHECKS = "3. Beyond the paper", "4. Checks"

T = TypeVar("T")


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
