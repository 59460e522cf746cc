"""One self-contained page of what `zerogap score` found: table, plots, every question, texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from zerogap.analysis.strata import Ranges
from zerogap.metrics import gaps
from zerogap.reporting.render import Cell, Column, Row, Table
from zerogap.reporting.templates import render_template
from zerogap.scoring.texts import Texts

TITLE = "Distance from the clean model"
MAX_CHARACTERS = 600  # of a text that is shown
WIDTH, HEIGHT = 300, 150  # of the plot over the strata, in units of its SVG


@dataclass(frozen=True)
class Scored:
    """What was scored.

    Attributes:
        clean: `solve` table of the reference.
        strategies: Name to show → `solve` table of the same questions in the same order.
        texts: Name to show → texts of the strategy's file.
        clean_texts: Texts of the clean file.
        leaked_known: Whether the leaked questions are known.
        bins: Number of strata.
    """

    clean: pd.DataFrame
    strategies: Mapping[str, pd.DataFrame]
    texts: Mapping[str, Texts]
    clean_texts: Texts
    leaked_known: bool
    bins: int


def to_html(
    scored: Scored, table: Table, clean_name: str, notes: Sequence[str], footer: str
) -> str:
    """The page; everything from the user's files is escaped.

    Args:
        scored: The counts and texts.
        table: The main metrics, one section per subset.
        clean_name: Name of the clean file.
        notes: What a reader of the results should know.
        footer: Last line of the page.
    """
    return render_template(
        "score.html.j2",
        title=TITLE,
        clean_name=clean_name,
        table=table,
        notes=notes,
        footer=footer,
        leaked_known=scored.leaked_known,
        strata=_strata_plot(scored),
        panels=_panels(scored),
        questions=_questions_table(scored),
        data=_data(scored),
    )


def _solve(table: pd.DataFrame) -> NDArray[np.float64]:
    return gaps.solve_probability(table["n_correct"], table["n_samples"])


def _strata_plot(scored: Scored) -> dict[str, Any]:
    """The curves in units of the SVG, whose y axis points down."""
    ranges = Ranges.of(scored.clean, scored.bins)
    curves = {name: ranges.mean_gaps(solve) for name, solve in scored.strategies.items()}
    highest = max(float(np.nanmax(means)) for means, _ in curves.values())
    top = max(0.1, np.ceil(10 * highest) / 10)
    x = WIDTH * ranges.centres
    return {
        "ticks": [
            {"y": HEIGHT * (1 - share), "text": f"{share * top:.2g}"} for share in (0, 0.5, 1)
        ],
        "lines": [
            {"name": name, "sa_ppg": f"{sa_ppg:.3f}", **_line(x, HEIGHT * (1 - means / top))}
            for name, (means, sa_ppg) in curves.items()
        ],
        "counts": list(zip(x.round(1), ranges.n_questions, strict=True)),
    }


def _line(x: NDArray[np.float64], y: NDArray[np.float64]) -> dict[str, str]:
    """A line through the points, with a gap where y is missing, and a dot at each of them."""
    line, dots = [], []
    for k, (left, down) in enumerate(zip(x, y, strict=True)):
        if np.isnan(down):
            continue
        place = f"{left:.1f} {down:.1f}"
        line.append(f"{'M' if k == 0 or np.isnan(y[k - 1]) else 'L'}{place}")
        dots.append(f"M{place}h0")
    return {"path": "".join(line), "dots": "".join(dots)}


def _panels(scored: Scored) -> list[dict[str, Any]]:
    """One scatter plot per strategy, in units of 1/100; the jitter is the same in every panel."""
    half_step = 50 / scored.clean["n_samples"].max()
    shift = np.random.default_rng(0).uniform(-half_step, half_step, (2, len(scored.clean)))
    x = (100 * _solve(scored.clean) + shift[0]).round(1)
    leaked = scored.clean["leaked"]
    kinds = leaked.map({True: ("dot", "leaked"), False: ("triangle", "unleaked")})
    marks = list(kinds) if scored.leaked_known else [("dot", "question")] * len(leaked)
    panels = []
    for index, (name, solve) in enumerate(scored.strategies.items()):
        y = (100 - 100 * _solve(solve) + shift[1]).round(1)
        points = [
            {"x": left, "y": down, "symbol": symbol, "kind": kind}
            for left, down, (symbol, kind) in zip(x, y, marks, strict=True)
        ]
        panels.append({"name": name, "index": index, "points": points})
    return panels


def _questions_table(scored: Scored) -> Table:
    """The solve probability of every question, and its gap as a mark behind the number."""
    clean = _solve(scored.clean)
    columns = {"clean": [Cell(float(value)) for value in clean]}
    for name, table in scored.strategies.items():
        solve = _solve(table)
        columns[name] = [
            Cell(float(value), mark=f" ({gap:+.2f})".replace("-", "−"))
            for value, gap in zip(solve, solve - clean, strict=True)
        ]
    cells = zip(*columns.values(), strict=True)
    ids = scored.clean["question_id"]
    return Table(
        label="questions",
        caption="",
        index_label="question",
        columns=tuple(Column(name, name) for name in columns),
        rows=tuple(Row(key, key, row) for key, row in zip(ids, cells, strict=True)),
        decimals=2,
    )


def _data(scored: Scored) -> dict[str, Any]:
    """What the page's script shows of a question."""
    questions: dict[str, str] = {}
    for texts in (*scored.texts.values(), scored.clean_texts):
        questions |= texts.questions
    ids = list(scored.clean["question_id"])
    clean = _solve(scored.clean).round(3).tolist()
    leaked = scored.clean["leaked"].tolist()
    return {
        "questions": [
            {"id": key, "text": _shortened(questions.get(key, "")), "clean": p, "leaked": is_leaked}
            for key, p, is_leaked in zip(ids, clean, leaked, strict=True)
        ],
        "strategies": [
            {
                "name": name,
                "solve": _solve(solve).round(3).tolist(),
                "responses": [
                    [_shortened(text) for text in scored.texts[name].responses.get(key, [])]
                    for key in ids
                ],
            }
            for name, solve in scored.strategies.items()
        ],
    }


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + "…"
