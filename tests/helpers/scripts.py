"""Python, and scripts of the workflow as a job runs them, in a process of their own."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from helpers.paths import ROOT

SCRIPTS = ROOT / "workflow/scripts"
_HUB_SWITCHES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")
_RUN_JOB = """
import importlib, json, sys
from types import SimpleNamespace

import script_helpers

name, job = json.loads(sys.argv[1])
for key, value in job.items():
    if isinstance(value, dict):
        job[key] = SimpleNamespace(**value)
script_helpers.run_job(importlib.import_module(name).main, SimpleNamespace(**job))
"""


def python(
    *arguments: object, cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run this Python, by default with the checkout's package and scripts on its path."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": f"{ROOT}/workflow{os.pathsep}{SCRIPTS}"} | dict(env or {}),
        capture_output=True,
        text=True,
        check=False,
    )


def pip_install(folder: Path, *packages: Path) -> None:
    """Install packages from the disk into a folder, without their dependencies and the network."""
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", folder]
    done = python("-m", "pip", "install", *options, *packages)
    assert done.returncode == 0, done.stderr


def command_line(
    name: str, folder: Path, parameters: Mapping[str, Any] | None, **paths: Any
) -> list[str]:
    """The command of a script of a `shell:` rule.

    Args:
        name: the script.
        folder: made, for what the script writes.
        parameters: its values; None for a script without any.
        paths: the other options; a list for those with several values.
    """
    words: list[Any] = [sys.executable, SCRIPTS / f"{name}.py"]
    if parameters is not None:
        folder.mkdir(parents=True, exist_ok=True)
        words += ["--parameters", json.dumps(parameters)]
    for key, value in paths.items():
        words.append(f"--{key.replace('_', '-')}")
        words += value if isinstance(value, list | tuple) else [value]
    return list(map(str, words))


def run_script(
    name: str,
    folder: Path,
    parameters: Mapping[str, Any] | None,
    *,
    env: Mapping[str, str] | None = None,
    max_file_size: int | None = None,
    **paths: Any,
) -> subprocess.CompletedProcess[str]:
    """Run a script of a `shell:` rule; see :func:`command_line`."""
    return _run(command_line(name, folder, parameters, **paths), env, max_file_size)


def run_job(
    name: str, log: Path, *, max_file_size: int | None = None, **job: Any
) -> subprocess.CompletedProcess[str]:
    """Run a script of a `script:` rule, with what it takes from the `snakemake` object.

    Args:
        name: the script.
        log: its log file, whose content is returned as standard error.
        max_file_size: no file may be larger, in bytes.
        job: input, output, params and wildcards; dictionaries become attributes.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    values = json.dumps([name, job | {"log": [str(log)]}], default=str)
    process = _run([sys.executable, "-c", _RUN_JOB, values], None, max_file_size)
    process.stderr += log.read_text()
    return process


def _run(
    command: list[str], env: Mapping[str, str] | None, max_file_size: int | None
) -> subprocess.CompletedProcess[str]:
    def limit_file_size() -> None:
        if max_file_size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_size, max_file_size))

    surroundings = {key: value for key, value in os.environ.items() if key not in _HUB_SWITCHES}
    return subprocess.run(
        command,
        env=surroundings
        | {"PYTHONPATH": f"{ROOT}/workflow{os.pathsep}{SCRIPTS}", "PYTHONDONTWRITEBYTECODE": "1"}
        | dict(env or {}),
        capture_output=True,
        text=True,
        preexec_fn=limit_file_size,
        check=False,
    )
