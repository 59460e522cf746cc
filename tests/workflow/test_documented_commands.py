"""The shell commands of the documentation: run, dry-run or parsed by the program that they call."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from _pytest.mark.structures import ParameterSet

from helpers.dry_runs import link_checkout, snakemake
from helpers.paths import ROOT
from zerogap.cli import main
from zerogap.cli.app import app, repeat_options

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "config/README.md"]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
SHELL = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
UNMARKED = re.compile(r"(?:\A|\n\n)```\n")
# They change the environment, need a network, or only show a file.
NOT_RUN = {
    *("source", "export", "touch", "echo", "cat", "pip", "pre-commit", "uvx", "lm_eval", "inspect"),
    *("python3", ".venv/bin/python", ".venv/bin/llamafactory-cli"),
}


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each command, without comments, settings of variables and `timeout`."""
    for block in SHELL.findall(page.read_text()):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            while words and re.fullmatch(r"[A-Z_0-9]+=.*", words[0]):
                del words[0]
            if words and words[0] == "timeout":
                words = words[words.index("snakemake") :]
            if words and words[0] not in NOT_RUN:
                yield words


COMMANDS = {tuple(words) for page in PAGES for words in commands(page)}


def calls(program: str, *first: str) -> list[ParameterSet]:
    """The distinct commands that call a program, without its name."""
    begin = (program, *first)
    found = sorted(words for words in COMMANDS if words[: len(begin)] == begin)
    return [pytest.param(list(words[1:]), id=" ".join(words)) for words in found]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A checkout with the files that the pages tell their reader to write."""
    folder = link_checkout(tmp_path_factory.mktemp("documented") / "zerogap")
    for name in ("config", "examples", "benchmarks"):
        (folder / name).symlink_to(ROOT / name)
    for page in PAGES:
        blocks = re.findall(r"```(?:python|yaml)\n# (\S+)\n(.*?)```", page.read_text(), re.DOTALL)
        for name, text in blocks:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
    for split in ("train", "test"):
        entries = ({"question": f"{split} {n}?", "answer": "It is A.\n#### A"} for n in range(200))
        lines = "".join(f"{json.dumps(entry)}\n" for entry in entries)
        (folder / f"my_benchmark/{split}.jsonl").write_text(lines)
    return folder


def test_every_command_calls_a_program_that_is_checked():
    assert {words[0] for words in COMMANDS} == {"make", "snakemake", "zerogap", "python"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_says_what_it_is(page):
    """`sh` for commands, `text` for output, or another language: only `sh` is checked here."""
    assert not UNMARKED.search(page.read_text())


# One of those that differ in a number only, or in being a dry run anyway.
ALIKE = {re.sub(r"\d+| -n$", "", call.id): call for call in calls("snakemake")}


@pytest.mark.parametrize("words", ALIKE.values())
def test_documented_calls_of_snakemake_plan_jobs(words, folder):
    process = snakemake(*words, "--dry-run", workdir=folder)
    assert process.returncode == 0, process.stdout + process.stderr
    assert re.search("Job stats|Nothing to be done", process.stdout + process.stderr)


@pytest.mark.parametrize("words", calls("make"))
def test_documented_calls_of_make_name_targets(words):
    process = subprocess.run(
        ["make", "--dry-run", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize("words", calls("zerogap"))
def test_documented_calls_of_zerogap_are_accepted(words, folder, monkeypatch, capsys):
    """Those whose inputs and packages are here are run, the others parsed."""
    monkeypatch.chdir(folder)
    name, *arguments = repeat_options(words)
    command = typer.main.get_command(app).commands[name]
    command.make_context(name, arguments)
    line = " ".join(words)
    missing = "--from|smollm2"  # a finished run, the package that `make smollm2` installs
    if "score --clean examples/" in line or (name == "plan" and not re.search(missing, line)):
        assert main(words) == 0
        assert capsys.readouterr().out


@pytest.mark.parametrize("words", calls("zerogap", "run"))
def test_documented_runs_plan_jobs(words, folder, monkeypatch):
    called = []
    monkeypatch.chdir(folder)
    monkeypatch.setattr("zerogap.config.files.checkout", lambda: folder)
    monkeypatch.setattr(os, "execv", lambda _, command: called.extend(command[3:]))
    assert main(words) == 0
    process = snakemake(*called, "--dry-run", workdir=folder)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "Job stats" in process.stdout + process.stderr


@pytest.mark.parametrize("words", calls("python"))
def test_documented_calls_of_python_name_scripts_and_options(words):
    script, *arguments = words
    if script == "-c":
        compile(arguments[0], "documentation", "exec")
        return
    text = "".join((ROOT / name).read_text() for name in (script, "benchmarks/common.py"))
    for option in (word for word in arguments if word.startswith("--")):
        assert re.search(rf'"{option}"|\b{option[2:]}=', text), option
