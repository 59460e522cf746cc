"""The report card's page, with texts that attack it, at the width of a phone."""

import re

import matplotlib.pyplot as plt
import numpy as np
import pytest

from helpers.browser import OVERFLOW, evaluate, needs_chromium
from zerogap.reporting.figures import plot_signal
from zerogap.reporting.render import Cell, Column, Row, Table
from zerogap.reporting.report_card import page

ATTACK = "</dd></script><script>alert(1)</script><img src=x>"
TABLE = Table(
    columns=tuple(Column(name, f"A long heading {name}") for name in "abcdef"),
    rows=(Row("r", "Solved", (Cell(0.5, 0.4, 0.6),) * 6),),
    caption="Means of M_cl.",
)
RESPONSES = [(True, [("48/2 = ", False), (f"24 {ATTACK}", True)]), (False, [])]
PLAIN = {
    "question_id": "q-0", "question": "How many?", "gold": "72", "greedy": " 72 clips",
    "greedy_correct": True, "solved": 1.0, "control": 0.25, "flagged": True, "responses": RESPONSES,
}  # fmt: skip
HOSTILE = {
    "question_id": "<b>" * 40, "question": f"{ATTACK}\x1b[31m\u202e" + "a" * 3000,
    "gold": "&" * 500, "greedy": "", "greedy_correct": False, "solved": 0.5, "control": np.nan,
    "flagged": False, "responses": [(True, [("9" * 3000, True)])],
}  # fmt: skip


def written(path, **changes):
    texts = {"title": "Tiny on <gsm8k>", "notes": ["A note."], "footer": "zerogap 1"}
    shown = {"tables": [TABLE], "signals": {}, "suspects": [], "paragraphs": ["Yes.", "Why."]}
    path.write_text(page(**(texts | shown | changes)))
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    values = np.linspace(0, 1, 30)
    signals = {"Solved": (values, values / 2), "Drop < 0": (-values, np.append(values, np.nan))}
    folder = tmp_path_factory.mktemp("card")
    return written(folder / "report.html", signals=signals, suspects=[PLAIN, HOSTILE])


@needs_chromium
def test_a_phone_shows_text_of_14_pixels_and_no_sideways_scrolling_with_all_questions_open(path):
    script = f"""
      const all = [...document.body.querySelectorAll("*")];
      const open = all.filter((e) => e.tagName === "DETAILS").map((e) => e.open);
      all.forEach((e) => {{ if (e.tagName === "DETAILS") e.open = true; }});
      const sizes = all.map((e) => parseFloat(window.getComputedStyle(e).fontSize));
      const overflow = (() => {{ {OVERFLOW} }})();
      return [open, Math.min(...sizes) >= 14, overflow,
              ...["script", "img", "b"].map((tag) => document.querySelectorAll(tag).length)];
    """
    assert evaluate(path, script, width=390) == [[True, False], True, 0, 1, 2, 0]


def test_a_question_has_its_probabilities_verdicts_and_the_rail_marked(path):
    first, second = path.read_text().split("<details")[1:]
    assert "solve probability 1.00, on its control 0.25" in first
    assert "control" not in second
    assert re.findall(">(right|wrong|flagged)</span>", first + second) == [
        *("flagged", "right", "right", "wrong"),
        *("wrong", "right"),
    ]
    assert re.search("48/2 = <mark>24 &lt;/dd&gt;.*</mark></dd>", first)
    assert first.count("(empty)") == 1
    assert r"\x1b[31m\u202e" in second


def test_the_page_loads_nothing_and_describes_every_panel(path):
    text = path.read_text()
    assert set(re.findall(r'(?:src|href)="(.{10})', text)) == {"data:image"}
    assert 'alt="Drop &lt; 0: benchmark mean −0.50 and controls mean 0.50"' in text


def test_without_controls_there_are_answer_tables_and_notes_but_no_empty_section(tmp_path):
    text = written(tmp_path / "report.html").read_text()
    assert '<p class="answer">Yes.</p>' in text
    assert "<h2>" not in text
    assert text.index("Why.") < text.index("M<sub>cl</sub>") < text.index("A note.")


def test_a_panel_has_every_number_in_its_row():
    benchmark, controls = np.array([0.1, np.nan, 0.1, 0.7]), np.array([0.4] * 50)
    figure = plot_signal(benchmark, controls)
    upper, lower = (np.asarray(c.get_offsets()) for c in figure.axes[0].collections)
    plt.close(figure)
    assert upper[:, 0].tolist() == [0.1, 0.1, 0.7]
    assert np.abs(upper[:, 1]).max() < 0.5 > np.abs(lower[:, 1] - 1).max()
