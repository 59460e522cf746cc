"""What a file of the project imports, read from its text: nothing runs, lazy imports count."""

import ast
import functools
import importlib.metadata
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from helpers.paths import ROOT

# Where a file of the project finds another by its bare name.
HOMES = [ROOT / "workflow", ROOT / "workflow/scripts", ROOT / "benchmarks", *ROOT.glob("tests/*/")]
DISTRIBUTIONS = importlib.metadata.packages_distributions()


@functools.cache
def names(path: Path) -> frozenset[str]:
    """Modules that a file imports, less those for the type checker alone.

    A class that is named as `package.module:Class` (the table of strategies) is imported too.
    """
    return frozenset(_names(ast.parse(path.read_text())))


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
            case ast.Constant(value=str(text)) if re.fullmatch(r"zerogap(\.\w+)+:\w+", text):
                yield text.partition(":")[0]
        pending.extend(ast.iter_child_nodes(node))


def project_file(module: str) -> Path | None:
    """The project's file of a module; None where the module is somebody else's, or no module."""
    for home in HOMES:
        place = home.joinpath(*module.split("."))
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if path.is_file():
                return path
    return None


def files(start: Path) -> set[Path]:
    """The project's files that a file reaches, itself among them."""
    found, pending = set(), [start]
    while pending:
        path = pending.pop()
        if path not in found:
            found.add(path)
            pending += filter(None, map(project_file, names(path)))
    return found


def imported(path: Path) -> set[str]:
    """Distributions (PyPI's names) of what a file itself imports."""
    modules = {module.split(".")[0] for module in names(path)}
    return {
        DISTRIBUTIONS.get(name, [name])[0].lower().replace("_", "-")
        for name in modules - sys.stdlib_module_names
        if project_file(name) is None
    }


def packages(start: Path) -> set[str]:
    """Distributions of what a file and all that it reaches import."""
    return set().union(*map(imported, files(start)))
