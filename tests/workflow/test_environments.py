"""What is declared is what is imported: conda environments, pyproject.toml, lock, containers."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from helpers import import_graph
from helpers.paths import ROOT

LOCK = (ROOT / "requirements.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
STAGES = sorted(path.stem for path in (ROOT / "envs").glob("*.yaml"))
# What is called, or read by what is called, and imported by no script.
CALLED = {
    "train": {"llamafactory", "peft", "lm-eval"},
    "report": {"snakemake", "jsonschema", "pyyaml"},
}


def pins(stage: str) -> dict[str, str]:
    """Package → version of a stage's environment."""
    environment = yaml.safe_load((ROOT / f"envs/{stage}.yaml").read_text())
    return dict(pin.split("==") for pin in environment["dependencies"][-1]["pip"])


def rules() -> list[str]:
    text = "\n".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    return re.split(r"(?m)^(?=\s*rule |use rule )", text)


def scripts(stage: str) -> set[Path]:
    """The scripts of the rules that ask for a stage's environment."""
    mine = [rule for rule in rules() if f"envs/{stage}.yaml" in rule]
    found = {name for rule in mine for name in re.findall(r'script\("(\w+)"\)', rule)}
    return {ROOT / f"workflow/scripts/{name}.py" for name in found}


def declared(*extras: str) -> set[str]:
    """Packages of the project's core and of some of its extras."""
    listed = [*PROJECT["dependencies"]]
    for extra in extras:
        listed += PROJECT["optional-dependencies"][extra]
    return {re.match(r"[\w-]+", entry)[0] for entry in listed}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stages_environment_has_what_its_scripts_import(stage):
    assert scripts(stage)
    needed = set().union(*(import_graph.packages(script) for script in scripts(stage)))
    assert needed | CALLED.get(stage, set()) <= set(pins(stage))


@pytest.mark.parametrize("stage", STAGES)
def test_environments_are_pinned_as_the_lock_file_is(stage):
    for package, version in pins(stage).items():
        assert re.search(rf"^{re.escape(package)}=={re.escape(version)}[ ;]", LOCK, re.M), (
            f"envs/{stage}.yaml: {package}=={version} is not the lock file's"
        )


def test_the_lock_file_names_no_index():
    assert "--index-url" not in LOCK
    assert "://" not in LOCK


@pytest.mark.parametrize(
    ("part", "extras"),
    [
        ("metrics", []),
        ("scoring", []),
        ("cli", []),
        ("analysis", ["reporting"]),
        ("data", ["data", "decoding"]),
        ("engine", ["decoding"]),
        ("strategies", ["decoding"]),
        ("sampling", ["decoding"]),
        ("training", ["training"]),
        ("reporting", ["reporting"]),
    ],
)
def test_a_part_of_the_package_imports_what_it_declares(part, extras):
    home = ROOT / "workflow/zerogap" / part
    files = home.glob("*.py") if home.is_dir() else [home]
    assert set().union(*map(import_graph.imported, files)) <= declared(*extras)


@pytest.mark.parametrize("folder", ["workflow", "tests", "benchmarks", "examples"])
def test_every_import_is_declared(folder):
    everything = declared(*PROJECT["optional-dependencies"])
    for path in (ROOT / folder).rglob("*.py"):
        assert import_graph.imported(path) <= everything, path


@pytest.mark.parametrize(
    "rule",
    [rule for rule in rules() if "code=sources(" in rule],
    ids=lambda rule: re.search(r"(\w+)(?: with)?:", rule)[1],
)
def test_a_cheap_rule_takes_all_code_it_runs_as_input(rule):
    """Less what every file shares: the file contracts, the errors, the command line."""
    parts, script = re.search(r'code=sources\(([^)]*), script="(\w+)"\)', rule).groups()
    named = set(re.findall(r'"(\w+)"', parts))
    home = ROOT / "workflow/zerogap"
    taken = {path.parent.name for path in import_graph.files(ROOT / f"workflow/scripts/{script}.py")
             if path.is_relative_to(home) and path.parent != home}  # fmt: skip
    assert taken <= named


@pytest.mark.parametrize("name", ["Dockerfile", "apptainer.def"])
def test_a_container_is_the_lock_file(name):
    """Read, not built."""
    text = (ROOT / "envs/containers" / name).read_text()
    assert re.search(r"^F(ROM|rom:) python:3\.12-slim$", text, re.M)
    assert re.search(
        r"(?m)^(COPY|%files\n) *requirements\.lock /opt/zerogap/requirements.lock$", text
    )
    assert "pip install --no-cache-dir --no-deps --require-hashes -r /opt/zerogap/req" in text
    for word in ("://", "index-url", "pypi", "--find-links", "trusted-host"):
        assert word not in text


def test_every_entry_of_the_lock_file_has_its_hash():
    entries = re.split(r"(?m)^(?=\S+==)", re.sub(r"(?m)^ *#.*\n", "", LOCK))[1:]
    assert len(entries) > 100
    for entry in entries:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry.split()[0]
