"""A digest of what code means: a result is made again when its code changes, not for a comment.

It covers modules and what they import of zerogap, of their own package and, unless that is
installed, of the modules next to it; also within functions. Of each file the syntax tree counts,
without comments, docstrings, layout and imports for the type checker only. A YAML file with the
name of a module counts as its part. What a module loads by a name in a string is not seen: name it
as a start. Where Snakemake runs, what files mean is kept by their content between processes.
"""

import ast
import functools
import hashlib
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Collection
from importlib.machinery import PathFinder
from pathlib import Path

import yaml

from zerogap.io.digests import bytes_digest, read_cache, write_cache

# Folders of modules that are nobody's own, and of those that have none.
_INSTALLED = {None, *map(Path, sysconfig.get_paths().values())}
CACHE = Path(".snakemake/zerogap/meanings.json")
_FORM = Path(__file__).read_bytes() + sys.version.encode()  # another one reads files otherwise
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@functools.cache
def digest(*starts: str | Path, without: Collection[str] = ()) -> str:
    """Digest the meaning of code (SHA-256, in hexadecimal), once per process.

    Args:
        starts: modules by their names, and scripts by their paths.
        without: modules of zerogap that are imported and not run, in a tuple or frozenset; what
            only they import is left out too.
    """
    packages = {"zerogap", *(_top(start) for start in starts if isinstance(start, str))}
    folders = {_home(package) for package in packages - {"zerogap"}} - _INSTALLED
    num_known, pending = len(_known()), list(starts)
    meanings: dict[str, str] = {}
    while pending:
        start = pending.pop()
        if str(start) in meanings or (found := _file(start)) is None:
            continue
        meanings[str(start)], imported = found
        pending += [
            name
            for name in imported - set(without)
            if _top(name) in packages or (folders and _home(_top(name)) in folders)
        ]
    if len(_known()) > num_known and CACHE.parents[1].is_dir():
        write_cache(CACHE, _known())
    named = sorted((Path(name).name, meaning) for name, meaning in meanings.items())
    return hashlib.sha256(repr(named).encode()).hexdigest()


def _top(module: str) -> str:
    return module.partition(".")[0]


@functools.cache
def _known() -> dict[str, tuple[str, list[str]]]:
    """Digest of a file's content → what :func:`_meaning` says of it."""
    return read_cache(CACHE)


@functools.cache
def _file(start: str | Path) -> tuple[str, frozenset[str]] | None:
    """What a module or script means, and the modules that it imports; None if it has no file."""
    path = _module_file(start) if isinstance(start, str) else start
    if path is None:
        return None
    data = path.with_suffix(".yaml")
    content = path.read_bytes(), data.read_bytes() if data.is_file() else b""
    key = bytes_digest(repr((_FORM, *content)).encode())
    if key not in _known():
        _known()[key] = _meaning(*content)
    meaning, names = _known()[key]
    package = str(start) if path.name == "__init__.py" else str(start).rpartition(".")[0]
    return meaning, frozenset(part for name in names for part in _modules(name, package))


def _meaning(code: bytes, data: bytes) -> tuple[str, list[str]]:
    """A digest of code without comments and docstrings and of its YAML, and what it imports."""
    try:
        tree = ast.parse(code)
    except SyntaxError:  # the job that imports it says so
        return bytes_digest(code), []
    names: set[str] = set()
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                node.body = [ast.Pass()]
            case ast.Import() | ast.ImportFrom():
                names.update(_imported(node))
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        pending.extend(ast.iter_child_nodes(node))
    text = ast.unparse(tree) + repr(yaml.safe_load(data) or "")
    return bytes_digest(text.encode()), sorted(names)


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    """What an import names: modules, or objects in them; with leading dots if it is relative."""
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.Import):
        return names
    dots, module = "." * node.level, f"{node.module}." if node.module else ""
    return [f"{dots}{module}{name}" for name in names]


def _modules(name: str, package: str) -> list[str]:
    """The modules that the import of a name runs, its packages included."""
    parts = importlib.util.resolve_name(name, package).split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]


def _module_file(module: str) -> Path | None:
    """The file of a module; None if it has none, or if the name is not a module's."""
    home = _home(_top(module))
    stem = home and home.joinpath(*module.split("."))
    files = [stem.with_suffix(".py"), stem / "__init__.py"] if stem else []
    return next((path for path in files if path.is_file()), None)


@functools.cache
def _home(package: str) -> Path | None:
    """The folder that a package or module is in: installed, or the working directory."""
    try:
        spec = importlib.util.find_spec(package) or PathFinder.find_spec(package, [os.getcwd()])
    except ValueError:  # a module without a specification, such as a script
        return None
    where = spec and (next(iter(spec.submodule_search_locations or []), None) or spec.origin)
    return Path(where).parent if where else None
