"""Finished questions as durable part files: a killed job goes on where it was.

A part is a fixed run of questions, decoded from an empty batch, so that what is drawn does not
depend on where an earlier attempt stopped: a resumed job ends with the bytes of an undisturbed one.
"""

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pandas as pd
from filelock import FileLock, Timeout

from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.io.resume import fingerprint


class Parts:
    """The part files of one sampling job, in the folder `<output>.parts`, locked while in use.

    Args:
        output: the file that the parts will make up.
        origin: everything the samples depend on; a part of another origin is made again.

    Raises:
        InputError: another process is making the same output (on entering).
    """

    batch_rows: int | None = None  # that of the latest part loaded: a resumed job goes on with it

    def __init__(self, output: Path, origin: Mapping[str, Any]) -> None:
        self._output = output
        self._folder = output.with_name(f"{output.name}.parts")
        self._origin = fingerprint(origin)

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(self._folder / "lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise InputError(
                f"{self._output}: another process is making it; wait for that one or stop it"
            ) from None
        for leftover in self._folder.glob(".*.part"):  # of a write that was killed
            leftover.unlink()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()

    def load(self, number: int, questions: Sequence[str], samples: int) -> pd.DataFrame | None:
        """A part that is whole and of this origin, else None; says why an existing one is not."""
        path = self._path(number)
        if not path.exists():
            return None
        try:
            table = parquet.read(path, "samples")
            facts = parquet.provenance(path)
        except (InputError, OSError) as error:
            return self._refused(path, f"it cannot be read ({error})")
        if facts.get("origin") != self._origin:
            return self._refused(path, "it was made from something else")
        if list(table.question_id) != [name for name in questions for _ in range(samples)]:
            return self._refused(path, "it holds other questions")
        self.batch_rows = facts["batch_rows"]
        return table

    def save(self, number: int, table: pd.DataFrame, batch_rows: int) -> None:
        """Keep a finished part, with how many samples were decoded together."""
        facts = {"origin": self._origin, "batch_rows": batch_rows}
        parquet.write(self._path(number), table, "samples", facts)

    def discard(self) -> None:
        """Remove the parts: the output is there."""
        shutil.rmtree(self._folder)

    def _path(self, number: int) -> Path:
        return self._folder / f"part-{number:05d}.parquet"

    def _refused(self, path: Path, reason: str) -> None:
        print(f"{path}: {reason}; its questions are sampled again", file=sys.stderr, flush=True)
