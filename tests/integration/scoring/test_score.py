"""The page of `zerogap score --html`, in headless Chromium, and the shipped example."""

import re
import runpy

import nbformat
import pytest

from helpers.browser import OVERFLOW, evaluate, needs_chromium
from helpers.paths import ROOT
from helpers.response_files import comma_separated, json_lines
from helpers.scripts import python
from zerogap.cli import main

ATTACK = (
    "</script><script>document.title='run'</script><img src=x onerror=\"document.title='run'\">"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Six questions; the second has hostile texts, and its id is markup."""
    folder = tmp_path_factory.mktemp("page")
    for name, least in (("clean", 1), ("railcap", 2)):
        rows = [
            {
                "question_id": f"<b>{k}</b>" if k == 1 else f"q{k}",
                "question": f"{ATTACK} {k} + 3?",
                "response": f"{ATTACK} {sample}. The answer is {k + 3 * (sample < n_right)}.",
                "gold": str(k + 3),
                "leaked": k < 3,
            }
            for k, n_right in enumerate([least + 1, least, least] * 2)
            for sample in range(4)
        ]
        json_lines(folder / f"{name}.jsonl", rows)
    files = ["--clean", folder / "clean.jsonl", f"{ATTACK.replace('=', '')}={folder}/railcap.jsonl"]
    path = folder / "report.html"
    assert main(["score", "--resamples", "100", *map(str, files), "--html", str(path)]) == 0
    return path


def test_the_page_is_one_file_without_external_resources(page):
    text = page.read_text()
    assert re.findall(r"<[^>]*(?:src|href)=\"(?!#)", text) == []
    assert "url(" not in text
    assert "http" not in text


def test_texts_of_the_files_are_not_markup(page):
    text = page.read_text()
    assert text.count("</script>") == 2
    assert "<img" not in text
    assert "<b>1</b>" not in text


@needs_chromium
def test_texts_of_the_files_do_not_run(page):
    assert evaluate(page, "return document.title") == ""
    assert evaluate(page, "return document.querySelectorAll('img, b').length") == 0


@needs_chromium
@pytest.mark.parametrize("width", [390, 1400])
def test_the_page_does_not_scroll_sideways(page, width):
    assert evaluate(page, OVERFLOW, width) == 0


@needs_chromium
def test_a_point_shows_its_question_probabilities_and_three_responses(page):
    hover = """
      const point = document.querySelector('use[data-question="1"]');
      point.dispatchEvent(new window.MouseEvent("mouseover", { bubbles: true }));
      const tip = document.getElementById("tip");
      return [tip.hidden, tip.innerText, tip.querySelectorAll("li").length];
    """
    hidden, text, n_responses = evaluate(page, hover)
    assert (hidden, n_responses) == (False, 3)
    assert "<b>1</b> (leaked)" in text
    assert f"{ATTACK} 1 + 3?" in text
    assert "clean model 0.25" in text
    assert "0.5\n" in text
    assert f"{ATTACK} 2." in text


@needs_chromium
def test_questions_are_sorted_when_a_heading_is_clicked(page):
    click = """
      const table = document.querySelector(".questions table");
      table.tHead.rows[0].cells[2].querySelector("button").click();
      return [table.tHead.rows[0].cells[2].ariaSort,
              ...[...table.tBodies[0].rows].map(row => parseFloat(row.cells[2].textContent))];
    """
    order, *values = evaluate(page, click)
    assert order == "ascending"
    assert len(set(values)) > 1
    assert values == sorted(values)


def test_files_of_counts_have_a_page_too(tmp_path):
    rows = [{"question_id": k, "n_correct": k, "n_samples": 5} for k in range(5)]
    clean, path = comma_separated(tmp_path / "clean.csv", rows), tmp_path / "report.html"
    other = comma_separated(tmp_path / "other.csv", rows)
    assert main(["score", "--clean", str(clean), str(other), "--html", str(path)]) == 0
    assert '<span class="leaked">' not in path.read_text()


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
