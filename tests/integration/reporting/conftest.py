"""A synthetic finished run, and what Snakemake hands to the scripts of the report."""

from types import SimpleNamespace

import pytest

from helpers import synthetic_run
from helpers.paths import ROOT
from zerogap.config import load

SCALE = ("config.yaml", "profiles/quick/quick.yaml")


@pytest.fixture(scope="session")
def load_scale():
    def load_quick(*overlays):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(ROOT)
            return load([*SCALE, *overlays])

    return load_quick


@pytest.fixture(scope="session")
def config(load_scale):
    return load_scale()


@pytest.fixture(scope="session")
def finished_run(config, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        synthetic_run.write_run(config)
        synthetic_run.write_timings(config)
    return folder


@pytest.fixture
def in_run(finished_run, monkeypatch):
    monkeypatch.chdir(finished_run)


@pytest.fixture
def job():
    def make(wildcards=None, inputs=None, **params):
        options = {"scale": "A tiny run.", "scale_note": "A toy.", "metadata": {"run": "quick"}}
        return SimpleNamespace(
            wildcards=SimpleNamespace(**(wildcards or {})),
            input=SimpleNamespace(**(inputs or {})),
            params=SimpleNamespace(**options | params),
        )

    return make
