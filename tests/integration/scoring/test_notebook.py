"""The example's notebook, run from top to bottom."""

import nbformat
import pytest

from helpers.paths import ROOT

PATH = ROOT / "examples/score/score.ipynb"
MAX_BYTES = 100_000


@pytest.fixture(scope="module")
def notebook():
    return nbformat.read(PATH, as_version=4)


def test_every_cell_prints_what_the_notebook_shows(notebook, monkeypatch, capsys):
    monkeypatch.chdir(PATH.parent)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    namespace = {"__name__": "__main__"}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, f"{PATH.name}, {cell.id}", "exec"), namespace)
            printed = [out.text for out in cell.outputs if out.output_type == "stream"]
            assert capsys.readouterr().out == "".join(printed)


def test_the_notebook_has_ten_cells_and_small_outputs(notebook):
    nbformat.validate(notebook)
    assert len(notebook.cells) == 10
    plots = [out for cell in notebook.cells for out in cell.get("outputs", []) if "data" in out]
    assert len(plots) == 2
    assert PATH.stat().st_size < MAX_BYTES
