"""Checkpoints of a decoding job: an interrupted job resumes after its last finished chunk.

A chunk is a fixed range of questions, decoded from an empty batch. What is drawn in it does not
depend on where an earlier attempt stopped, so a resumed job writes the same bytes as one that was
never interrupted.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.io.sealed import find_sealed, seal


class Checkpoint:
    """The finished chunks of one job, one sealed Parquet file each.

    Args:
        folder: where they are kept: the folder from :func:`zerogap.io.resume.resumable_dir`, which
            also makes sure that they come from a job with the same settings.
        contract: of the table that the job makes (:mod:`zerogap.io.parquet`).

    Attributes:
        batch_size: batch size of the latest chunk loaded. A resumed job does not exceed it, since
            an earlier attempt may have reduced it when it ran out of memory.
    """

    def __init__(self, folder: Path, contract: str = "samples") -> None:
        self._folder, self._contract = folder, contract
        self.batch_size: int | None = None

    def load(
        self, number: int, question_ids: Sequence[str], num_samples: int = 1
    ) -> pd.DataFrame | None:
        """Return a finished chunk, or None where there is none or it cannot be used.

        A chunk that cannot be used is reported on standard error.

        Args:
            number: the chunk's number.
            question_ids: the questions that it must hold.
            num_samples: how many responses each of them must have.
        """
        try:
            path = find_sealed(self._path(number))
        except InputError as error:
            print(f"{error}; decoding its questions again", file=sys.stderr, flush=True)
            return None
        if path is None:
            return None
        table = parquet.read(path, self._contract)
        expected = [name for name in question_ids for _ in range(num_samples)]
        if list(table.question_id) != expected:
            problem = "holds other questions; decoding its questions again"
            print(f"{path}: {problem}", file=sys.stderr, flush=True)
            return None
        self.batch_size = parquet.provenance(path)["batch_size"]
        return table

    def save(self, number: int, table: pd.DataFrame, batch_size: int) -> None:
        """Store a finished chunk and the batch size that it was decoded with."""
        path = self._path(number)
        parquet.write(path, table, self._contract, {"batch_size": batch_size})
        seal(path)

    def _path(self, number: int) -> Path:
        return self._folder / f"chunk-{number:05d}.parquet"
