"""Declared and imported packages agree: conda environments, pyproject.toml, lock, containers."""

import ast
import functools
import hashlib
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from helpers.paths import ROOT
from helpers.workflow_rules import rule_texts

LOCKS = {
    name: (ROOT / name).read_text()
    for name in ("requirements.lock", "envs/vllm.lock", "envs/vllm-cpu.lock")
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Other versions than requirements.lock has.
PINS = dict(re.findall(r"(?m)^([\w-]+)==(\S+)$", (ROOT / "envs/vllm.in").read_text()))
COMMON = (ROOT / "workflow/rules/common.smk").read_text()
FAMILIES = set((ROOT / "workflow/zerogap/families").glob("*.py"))
# Folders from which project files import each other by their bare names.
HOMES = [
    *(ROOT / name for name in ("workflow", "workflow/scripts", "benchmarks", "tools", "tests")),
    *ROOT.glob("tests/*/"),
]
# The registry of strategies names classes as `package.module:Class`; this module imports them.
STRATEGY_BUILDER = ROOT / "workflow/zerogap/strategies/base.py"
STRATEGY_REGISTRY = ROOT / "workflow/zerogap/strategies/registry.py"
DISTRIBUTIONS = importlib.metadata.packages_distributions()


@functools.cache
def names(path: Path) -> frozenset[str]:
    """The modules that a file imports; of the strategies' builder, all that the registry names."""
    modules = frozenset(imports(path.read_text()))
    if path == STRATEGY_BUILDER:
        targets = re.findall(r'"(zerogap\.[\w.]+):\w+"', STRATEGY_REGISTRY.read_text())
        assert targets
        modules |= frozenset(targets)
    return modules


def imports(text: str) -> Iterator[str]:
    """The modules that a text imports, also in functions, except for the type checker only."""
    pending: list[ast.AST] = [ast.parse(text)]
    while pending:
        node = pending.pop()
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module
                yield from (f"{module}.{alias.name}" for alias in node.names)
        pending.extend(ast.iter_child_nodes(node))


# Tools that call this package, one of Inspect's, the reader of GGUF files (envs/smollm2.txt), and
# an engine that benchmarks compare.
CALLERS = {"vllm", "inspect-ai", "anyio", "gguf", "openvino", "openvino-genai"}


def project_file(module: str) -> Path | None:
    """The project's file of a module, or None if the module is not part of the project."""
    for home in HOMES:
        stem = home.joinpath(*module.split("."))
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            if path.is_file():
                return path
    return None


def files(start: Path) -> set[Path]:
    """The project's files that a file imports, directly or indirectly, and itself."""
    reached, pending = set(), [start]
    while pending:
        path = pending.pop()
        if path not in reached:
            reached.add(path)
            pending += filter(None, map(project_file, names(path)))
    return reached


def imported(path: Path) -> set[str]:
    """The distributions (names on PyPI) that a file itself imports."""
    modules = {module.split(".")[0] for module in names(path)}
    return {
        DISTRIBUTIONS.get(name, [name])[0].lower().replace("_", "-")
        for name in modules - sys.stdlib_module_names
        if project_file(name) is None
    }


def declared(*extras: str) -> set[str]:
    """Packages of the project's core and of some of its extras."""
    entries = [*PROJECT["dependencies"]]
    for extra in extras:
        entries += PROJECT["optional-dependencies"][extra]
    return {re.match(r"[\w-]+", entry)[0] for entry in entries}


def test_vllms_environment_has_what_the_scripts_of_its_rules_import():
    """Model families import torch only when they read or build a model."""
    assert "envs/vllm.yaml" in COMMON
    texts = "\n".join(text for text in rule_texts().values() if "DECODING_ENVIRONMENT" in text)
    scripts = {ROOT / "workflow" / path for path in re.findall(r"scripts/\w+\.py", texts)}
    assert scripts
    reached = set().union(*map(files, scripts)) - FAMILIES
    assert {name for file in reached for name in imported(file)} <= set(PINS)


def test_the_same_vllm_is_used_and_tested():
    tested = re.search(r"(?m)^vllm-cpu==(\S+)$", (ROOT / "envs/vllm-cpu.in").read_text())[1]
    assert PINS["vllm"] == tested
    torch = (ROOT / "envs/vllm-override.txt").read_text().strip()
    assert torch == f"torch=={PINS['torch']}"
    for name, version in PINS.items():
        assert re.search(rf"(?m)^{name}=={version}\b", LOCKS["envs/vllm.lock"]), "run `make lock`"


def test_every_conda_environment_is_a_lock_file():
    texts = [COMMON, *rule_texts().values()]
    named = {name for text in texts for name in re.findall(r'/(envs/[\w.]+)"', text)}
    assert named == {"envs/zerogap.yaml", "envs/vllm.yaml"}
    for name, lock in (("zerogap", "requirements.lock"), ("vllm", "envs/vllm.lock")):
        environment = yaml.safe_load((ROOT / f"envs/{name}.yaml").read_text())
        assert environment["dependencies"] == ["python=3.11", "pip"]
        script = (ROOT / f"envs/{name}.post-deploy.sh").read_text()
        assert f"pip install --no-deps --require-hashes -r {lock}" in script
        assert hashlib.sha256(LOCKS[lock].encode()).hexdigest() in script, "run `make lock`"


@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS)
def test_a_lock_file_has_hashes_and_names_no_index(lock):
    assert not re.search("--index-url|://", lock)
    entries = re.split(r"(?m)^(?=\S+==)", re.sub(r"(?m)^ *#.*\n", "", lock))[1:]
    assert len(entries) > 100
    assert [e.split()[0] for e in entries if not re.search(r"--hash=sha256:[0-9a-f]{64}", e)] == []


@pytest.mark.parametrize(
    ("parts", "extras"),
    [
        (["metrics", "scoring", "cli"], []),
        (["analysis", "reporting"], ["reporting"]),
        (["engine", "strategies", "sampling"], ["decoding"]),
        (["data", "integrations"], ["data", "decoding", "math"]),
        (["training"], ["training"]),
    ],
)
def test_parts_of_the_package_import_declared_packages_only(parts, extras):
    for path in (p for part in parts for p in (ROOT / "workflow/zerogap" / part).rglob("*.py")):
        assert imported(path) - CALLERS <= declared(*extras), path


@pytest.mark.parametrize("folder", ["workflow", "tests", "benchmarks", "examples"])
def test_every_import_is_declared(folder):
    everything = declared(*PROJECT["optional-dependencies"]) | CALLERS
    for path in (ROOT / folder).rglob("*.py"):
        assert imported(path) <= everything, path


@pytest.mark.parametrize("name", ["Dockerfile", "apptainer.def"])
def test_a_container_has_the_packages_of_the_lock_file(name):
    """The file is read; no image is built."""
    text = (ROOT / "envs/containers" / name).read_text()
    assert re.search(r"^F(ROM|rom:) python:3\.12-slim$", text, re.M)
    assert "pip install --no-cache-dir --no-deps --require-hashes -r /opt/zerogap/req" in text
    assert re.search(r"apt-get install .*\bgit gcc libc6-dev\b", text)  # Triton needs a compiler
    assert not re.search("://|index-url|pypi|--find-links|trusted-host", text)
