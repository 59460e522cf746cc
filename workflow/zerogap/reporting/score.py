"""What `zerogap score` found, as a table and as one self-contained page.

The page has the table, plots, every question and its texts.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from zerogap.analysis.strata import Ranges
from zerogap.io import atomic
from zerogap.metrics.same_questions import probabilities
from zerogap.reporting.render import (
    Cell,
    Row,
    Table,
    format_number,
    provenance_line,
    render_template,
    rounded,
)
from zerogap.reporting.tables.rows import columns_of, difference_notes
from zerogap.scoring.inputs import Loaded, Texts
from zerogap.scoring.score import BATCH2, Aligned

TITLE = "Distance from the clean model"
ASSUMPTION = (
    "What this assumes: the clean model differs from the model in the contamination and in nothing "
    "else. Any other difference between the two is part of the gaps as well."
)
MAX_CHARACTERS = 600  # of a text that is shown
WIDTH, HEIGHT = 300, 150  # of the plot over the strata, in units of its SVG
DECIMALS = 3
BOLD_NOTE = (
    "Bold: the lowest value of a strategy, a point estimate; Identity and the noise floor do not "
    "compete."
)
BEATEN_NOTE = "Identity, the model without mitigation, has a lower value than every strategy"
NOISE_FLOOR_NOTE = (
    "The clean model's batch 2 is the noise floor, a perfect restoration's mean value."
)
NOT_COMPETING = ("clean", BATCH2, "identity")


def strategy_label(name: str) -> str:
    """The name of a strategy as it is shown."""
    return "clean, batch 2" if name == BATCH2 else name


def score_table(
    summary: pd.DataFrame,
    *,
    drawn: str = "questions",
    bins: int = 50,
    confidence_level: float = 0.95,
) -> Table:
    """The main metrics with intervals, one row per strategy and one section per subset.

    `summary` is that of `zerogap.scoring.score`, and `drawn` what the bootstrap drew again. The
    lowest value of the first column is bold, where the clean model solves anything; Identity, which
    is not a strategy, does not compete.
    """
    columns = columns_of(dict(zip(summary["metric"], summary["label"], strict=True)))
    has_sections = summary["subset"].nunique() > 1
    is_unsolved = (
        summary[["strategy", "metric", "value"]].eq(["clean", "solve_mean", 0]).all(axis=1)
    )
    shown = summary[
        summary["metric"].eq(columns[0].key)
        & ~summary["subset"].isin(summary.loc[is_unsolved, "subset"])
    ]
    values = shown["value"].map(lambda value: rounded(value, DECIMALS))  # as printed
    competes = ~shown["strategy"].isin(NOT_COMPETING)
    lowest = shown["subset"].map(values[competes].groupby(shown["subset"]).min())
    best = values.index[competes & values.eq(lowest)]
    beaten = shown.loc[shown["strategy"].eq("identity") & values.lt(lowest), "subset"]
    rows = []
    parts = ["value", "ci_low", "ci_high", "significant"]
    for group, of_row in summary.groupby(["subset", "strategy"], sort=False):
        subset, strategy = map(str, group)
        cells = (
            Cell(value, low, high, bold=index in best, mark="†" if significant else "")
            for index, value, low, high, significant in of_row[parts].itertuples()
        )
        section = f"{subset} ({of_row['n_questions'].iloc[0]})" if has_sections else ""
        rows.append(Row(strategy, strategy_label(strategy), tuple(cells), section))
    notes: tuple[str, ...] = (BOLD_NOTE,) if len(best) else ()
    if len(beaten):
        where = f" in: {', '.join(beaten)}" if has_sections else ""
        notes += (f"{BEATEN_NOTE}{where}.",)
    notes += (NOISE_FLOOR_NOTE,) if BATCH2 in set(summary["strategy"]) else ()
    return Table(
        label="tab:score",
        caption=(
            f"Distance from the clean model on {summary['n_questions'].max()} questions, lower is "
            f"better, with {confidence_level * 100:g}% bootstrap intervals over {drawn}; {bins} "
            "strata. S-Δ⁺: contamination that remains; S-Δ⁻: damage; Solved: mean solve "
            "probability."
        ),
        index_label="Strategy",
        columns=columns,
        rows=tuple(rows),
        notes=(*notes, *difference_notes(columns, rows)),
        decimals=DECIMALS,
        intervals=True,
    )


def write(
    path: Path,
    table: Table,
    aligned: Aligned,
    files: Mapping[str, Loaded],
    provenance: Mapping[str, Any],
) -> None:
    """Write the page; everything from the user's files is escaped.

    Args:
        path: The page.
        table: That of `score_table`.
        aligned: The tables that were scored.
        files: Name → file with its texts, of ``clean`` and every strategy.
        provenance: Version, options and notes; the same as in the other outputs.
    """
    page = render_template(
        "score.html.j2",
        title=TITLE,
        clean_name=files["clean"].path.name,
        table=table,
        notes=provenance["notes"],
        footer=provenance_line(provenance),
        leaked_known=aligned.leaked_known,
        strata=_strata_plot(aligned, provenance["bins"]),
        panels=_panels(aligned),
        questions=_questions_table(aligned),
        data=_data(aligned, {name: file.texts for name, file in files.items()}),
    )
    atomic.write_text(path, page)


def _strata_plot(aligned: Aligned, bins: int) -> dict[str, Any]:
    """The curves in units of the SVG, whose y axis points down."""
    ranges = Ranges(aligned.clean, bins)
    curves = {name: ranges.mean_gaps(solve) for name, solve in aligned.strategies.items()}
    top = max(0.1, np.ceil(10 * np.nanmax([means for means, _ in curves.values()])) / 10)
    x = WIDTH * ranges.centres
    lines = [
        {"name": strategy_label(name), "sa_ppg": format_number(sa_ppg, 3)}
        | _line(x, HEIGHT * (1 - means / top))
        for name, (means, sa_ppg) in curves.items()
    ]
    ticks = [{"y": HEIGHT * (1 - share), "text": f"{share * top:.2g}"} for share in (0, 0.5, 1)]
    counts = list(zip(x.round(1), ranges.n_questions, strict=True))
    return {"lines": lines, "ticks": ticks, "counts": counts}


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


def _panels(aligned: Aligned) -> list[dict[str, Any]]:
    """One scatter plot per strategy, in units of 1/100; the jitter is the same in every panel."""
    # Half a step of the grid, but within the frame.
    half_step = min(3, 50 / aligned.clean["n_samples"].max())
    shift = np.random.default_rng(0).uniform(-half_step, half_step, (2, len(aligned.clean)))
    x = (100 * probabilities(aligned.clean) + shift[0]).round(1)
    unleaked = "unleaked" if aligned.leaked_known else "question"
    kinds = aligned.clean["leaked"].map({True: "leaked", False: unleaked})
    panels = []
    for name, solve in aligned.strategies.items():
        y = (100 - 100 * probabilities(solve) + shift[1]).round(1)
        points = list(zip(x, y, kinds, strict=True))
        panels.append({"name": strategy_label(name), "points": points})
    return panels


def _questions_table(aligned: Aligned) -> Table:
    """The solve probability of every question, and its gap as a mark behind the number."""
    clean = probabilities(aligned.clean).tolist()
    columns = {"clean": [Cell(value) for value in clean]}
    for name, table in aligned.strategies.items():
        columns[strategy_label(name)] = [
            Cell(value, mark=f" ({round(value - reference, 2) + 0.0:+.2f})".replace("-", "−"))
            for value, reference in zip(probabilities(table).tolist(), clean, strict=True)
        ]
    rows = zip(aligned.clean["question_id"], *columns.values(), strict=True)
    return Table(
        columns=columns_of({name: name for name in columns}),
        rows=tuple(Row(key, key, tuple(cells)) for key, *cells in rows),
        index_label="question",
        decimals=2,
    )


def _data(aligned: Aligned, texts: Mapping[str, Texts]) -> dict[str, Any]:
    """What the page's script shows of a question."""
    asked: dict[str, str] = {}
    for name in (*aligned.strategies, "clean"):
        asked |= texts[name].questions
    clean = probabilities(aligned.clean).round(3).tolist()
    ids, leaked = aligned.clean["question_id"], aligned.clean["leaked"].tolist()
    return {
        "questions": [
            {"id": key, "text": _shortened(asked.get(key, "")), "clean": p, "leaked": is_leaked}
            for key, p, is_leaked in zip(ids, clean, leaked, strict=True)
        ],
        "strategies": [
            {
                "name": strategy_label(name),
                "solve": probabilities(solve).round(3).tolist(),
                "responses": [
                    list(map(_shortened, texts[name].responses.get(key, []))) for key in ids
                ],
            }
            for name, solve in aligned.strategies.items()
        ],
    }


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + "…"
