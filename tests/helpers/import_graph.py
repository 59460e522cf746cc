"""Imports of the project's files, read from the source: nothing runs, lazy imports count."""

import ast
import functools
import importlib.metadata
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from helpers.paths import ROOT

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
def names(path: Path, any_strategy: bool = True) -> frozenset[str]:
    """Return the modules that a file imports, except those for the type checker only.

    Args:
        path: a Python file of the project.
        any_strategy: count the strategies that the registry names as imports of their builder.
    """
    modules = frozenset(_names(ast.parse(path.read_text())))
    if path == STRATEGY_BUILDER and any_strategy:
        targets = re.findall(r'"(zerogap\.[\w.]+):\w+"', STRATEGY_REGISTRY.read_text())
        assert targets
        modules |= frozenset(targets)
    return modules


def _names(tree: ast.AST) -> Iterator[str]:
    pending = [tree]
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


def project_file(module: str) -> Path | None:
    """Return the project's file of a module, or None if the module is not part of the project."""
    for home in HOMES:
        stem = home.joinpath(*module.split("."))
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            if path.is_file():
                return path
    return None


def files(start: Path, any_strategy: bool = True) -> set[Path]:
    """Return the project's files that a file imports, directly or indirectly, and itself.

    `any_strategy`: see :func:`names`.
    """
    reached, pending = set(), [start]
    while pending:
        path = pending.pop()
        if path not in reached:
            reached.add(path)
            pending += filter(None, map(project_file, names(path, any_strategy)))
    return reached


def imported(path: Path) -> set[str]:
    """Return the distributions (names on PyPI) that a file itself imports."""
    modules = {module.split(".")[0] for module in names(path)}
    return {
        DISTRIBUTIONS.get(name, [name])[0].lower().replace("_", "-")
        for name in modules - sys.stdlib_module_names
        if project_file(name) is None
    }


def packages(start: Path) -> set[str]:
    """Return the distributions that a file imports, directly or through project files."""
    return set().union(*map(imported, files(start)))
