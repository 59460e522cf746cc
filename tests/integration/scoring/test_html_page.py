"""The page of `zerogap score --html`, in headless Chromium."""

import re

import pytest

from helpers.browser import OVERFLOW, evaluate, needs_chromium
from helpers.response_files import comma_separated, json_lines
from zerogap.cli import main

ATTACK = (
    "</script><script>document.title='run'</script><img src=x onerror=\"document.title='run'\">"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Six questions; the second has hostile texts, and its id is markup."""
    folder = tmp_path_factory.mktemp("page")
    for name, n_right in (("clean", 1), ("railcap", 2)):
        rows = [
            {
                "question_id": f"<b>{k}</b>" if k == 1 else f"q{k}",
                "question": f"{ATTACK} {k} + 3?",
                "response": f"{ATTACK} {sample}. The answer is {k + 3 * (sample < n_right)}.",
                "gold": str(k + 3),
                "leaked": k < 3,
            }
            for k in range(6)
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
      return table.tHead.rows[0].cells[2].ariaSort;
    """
    assert evaluate(page, click) == "ascending"


def test_files_of_counts_have_a_page_too(tmp_path):
    rows = [{"question_id": k, "n_correct": k, "n_samples": 5} for k in range(5)]
    clean, path = comma_separated(tmp_path / "clean.csv", rows), tmp_path / "report.html"
    other = comma_separated(tmp_path / "other.csv", rows)
    assert main(["score", "--clean", str(clean), str(other), "--html", str(path)]) == 0
    assert '<span class="leaked">' not in path.read_text()
