"""The cluster of all Slurm tests."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.slurm_node import Cluster, missing


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    if missing():
        pytest.skip(f"no Slurm on this machine; not installed: {', '.join(missing())}")
    with tempfile.TemporaryDirectory(prefix="slurm-") as name, Cluster(Path(name)) as running:
        yield running
