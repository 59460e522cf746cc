"""The shipped example of `zerogap score`: its command, its files and its notebook."""

import runpy

import nbformat
import pytest

from helpers.paths import ROOT
from helpers.scripts import python
from zerogap.cli import main

EXAMPLE = ROOT / "examples/score"
NOTEBOOK = EXAMPLE / "score.ipynb"
FAST = ["--resamples", "100"]
PATHS = [
    *("--clean", "examples/score/clean.jsonl", "examples/score/identity.jsonl"),
    *("examples/score/railcap.csv", "--leaked", "examples/score/leaked.txt"),
]


@pytest.mark.parametrize(
    ("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")]
)
def test_the_plot_has_the_format_of_its_suffix(suffix, start, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    path = tmp_path / f"gaps{suffix}"
    assert main(["score", *FAST, *PATHS, "--plot", str(path)]) == 0
    assert path.read_bytes().startswith(start)


def test_the_example_runs_without_torch():
    run = python("-X", "importtime", "-m", "zerogap", "score", *FAST, *PATHS)
    assert "unleaked (12)" in run.stdout
    imported = {line.rsplit("|", 1)[1].strip() for line in run.stderr.splitlines() if "|" in line}
    assert "zerogap.metrics.evaluate" in imported
    assert not imported & {"torch", "transformers", "matplotlib", "lm_eval"}


def test_importing_the_command_line_does_not_load_pandas():
    code = "import sys, zerogap.cli; sys.exit('pandas' in sys.modules)"
    assert python("-c", code).returncode == 0


def test_the_example_files_equal_what_their_script_writes(tmp_path):
    runpy.run_path(str(EXAMPLE / "simulate.py"))["main"](tmp_path)
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    shipped = {
        p.name: p.read_bytes() for p in EXAMPLE.iterdir() if p.suffix not in (".py", ".ipynb")
    }
    assert written == shipped


@pytest.fixture(scope="module")
def notebook():
    return nbformat.read(NOTEBOOK, as_version=4)


def test_every_cell_prints_what_the_notebook_shows(notebook, monkeypatch, capsys):
    monkeypatch.chdir(NOTEBOOK.parent)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    namespace = {"__name__": "__main__"}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, f"{NOTEBOOK.name}, {cell.id}", "exec"), namespace)
            printed = [out.text for out in cell.outputs if out.output_type == "stream"]
            assert capsys.readouterr().out == "".join(printed)
