"""The journal of a neuron localisation: an interrupted job resumes after its last finished group.

A group's accuracies do not depend on which groups an earlier attempt has scored, so a resumed job
writes the same table as one that was never interrupted.
"""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from zerogap.errors import InputError
from zerogap.io import atomic
from zerogap.io.digests import value_digest
from zerogap.io.sealed import find_sealed, seal
from zerogap.strategies.neuron_localisation import Accuracies, NeuronGroup

_Key = tuple[str, NeuronGroup | None]


class NeuronJournal:
    """What one localisation job has measured so far.

    Args:
        folder: where it is kept: the folder from :func:`zerogap.io.resume.resumable_dir`, which
            also makes sure that it comes from a job with the same settings.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "accuracies.jsonl"
        self._comparative_path = folder / "comparative.npz"
        self._accuracies: dict[_Key, float] = {}
        self._batch_sizes: dict[str, int] = {}
        self._read()

    def has(self, model: str, group: NeuronGroup | None) -> bool:
        """Return whether a model's accuracy is known.

        Args:
            model: "contaminated" or "clean".
            group: the patched group; None for the unpatched model.
        """
        return (model, group) in self._accuracies

    def accuracies(self, model: str, groups: Sequence[NeuronGroup]) -> Accuracies:
        """Return a model's accuracies on these groups, all of which must be known."""
        patched = {group: self._accuracies[model, group] for group in groups}
        return Accuracies(self._accuracies[model, None], patched)

    def batch_size(self, model: str) -> int | None:
        """Return the batch size of the model's latest patched pass.

        A resumed job continues with it, since an earlier attempt may have reduced it when it ran
        out of memory.
        """
        return self._batch_sizes.get(model)

    def add(
        self, model: str, group: NeuronGroup | None, accuracy: float, batch_size: int | None
    ) -> None:
        """Store an accuracy; it is on disk when this returns."""
        entry = {"model": model, "group": group, "accuracy": accuracy, "batch_size": batch_size}
        with self._path.open("a") as file:
            file.write(json.dumps([value_digest(entry), entry]) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._remember(entry)

    def comparative_scores(self) -> list[np.ndarray] | None:
        """Return the comparative scores of every layer, if they are known."""
        try:
            path = find_sealed(self._comparative_path)
        except InputError as error:
            print(f"{error}; computing it again", file=sys.stderr, flush=True)
            return None
        if path is None:
            return None
        with np.load(path) as arrays:
            return [arrays[f"arr_{layer}"] for layer in range(len(arrays.files))]

    def add_comparative_scores(self, scores: list[np.ndarray]) -> None:
        """Store the comparative scores of every layer."""
        with atomic.replacing(self._comparative_path) as temporary, temporary.open("wb") as file:
            np.savez(file, *scores)
        seal(self._comparative_path)

    def _read(self) -> None:
        """Read the entries; what follows an unreadable line is dropped and measured again."""
        lines = self._path.read_bytes().splitlines() if self._path.exists() else []
        for number, line in enumerate(lines):
            entry = _intact_entry(line)
            if entry is None:
                problem = f"line {number + 1} is not readable; measuring from there"
                print(f"{self._path}: {problem}", file=sys.stderr, flush=True)
                with atomic.replacing(self._path) as temporary:
                    temporary.write_bytes(b"".join(kept + b"\n" for kept in lines[:number]))
                return
            self._remember(entry)

    def _remember(self, entry: dict[str, Any]) -> None:
        group = None if entry["group"] is None else NeuronGroup(*entry["group"])
        self._accuracies[entry["model"], group] = float(entry["accuracy"])
        if group is not None and entry["batch_size"] is not None:
            self._batch_sizes[entry["model"]] = int(entry["batch_size"])


def _intact_entry(line: bytes) -> dict[str, Any] | None:
    """The entry of a line, if it is what was written."""
    try:
        digest, entry = json.loads(line)
    except (ValueError, TypeError):
        return None
    return entry if digest == value_digest(entry) else None
