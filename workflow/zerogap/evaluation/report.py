"""The files that an evaluation leaves for its reader, next to the responses."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from zerogap.evaluation.collect import SETTINGS
from zerogap.evaluation.comparison import CleanComparison
from zerogap.evaluation.strategies import IDENTITY
from zerogap.evaluation.summary import Summary
from zerogap.evaluation.tables import LABELS
from zerogap.io import atomic
from zerogap.io.provenance import provenance
from zerogap.reporting.figures import style
from zerogap.reporting.figures.drops import plot_drops
from zerogap.reporting.render import Table, to_markdown

QUESTIONS, SUMMARY, PAGE, PLOT = "questions.csv", "summary.json", "summary.md", "questions.png"


def write(
    folder: Path,
    summary: Summary,
    comparison: CleanComparison | None,
    tables: Sequence[Table],
    paragraphs: Sequence[str],
    title: str,
) -> None:
    """Write the questions, the summary and the plot.

    Args:
        folder: of the evaluation.
        summary: its numbers.
        comparison: those against the clean model, if there is one.
        tables: what is printed.
        paragraphs: the verdict.
        title: the setting.
    """
    with atomic.replacing(folder / QUESTIONS) as path:
        summary.questions.to_csv(path, index=False)
    values: dict[str, Any] = {
        "strategies": {name: dataclasses.asdict(row) for name, row in summary.strategies.items()},
        "num_questions": len(summary.questions),
        "num_solvable": summary.num_solvable,
        "num_peaked": summary.num_peaked,
        "num_both": summary.num_both,
        "num_cut_off": summary.num_cut_off,
        "verdict": list(paragraphs),
        "provenance": provenance(**json.loads((folder / SETTINGS).read_text())),
    }
    if comparison is not None:
        values["metrics"] = comparison.metrics.to_dict("records")
        values["notes"] = list(comparison.notes)
    with atomic.replacing(folder / SUMMARY) as path:
        text = json.dumps(_without_nan(values), indent=1, ensure_ascii=False)
        path.write_text(f"{text}\n", encoding="utf-8")
    notes = comparison.notes if comparison else ()
    parts = [
        f"# {title}",
        *(to_markdown(table) for table in tables),
        *(f"Note: {note}." for note in notes),
        "## Verdict",
        *paragraphs,
    ]
    with atomic.replacing(folder / PAGE) as path:
        path.write_text("\n\n".join(part.strip() for part in parts) + "\n", encoding="utf-8")
    others = {name: LABELS.strategy(name) for name in summary.strategies if name != IDENTITY}
    style.write(plot_drops(summary.questions, others, title), folder / PLOT)


def _without_nan(value: Any) -> Any:
    """The value with None for NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if value != value else value
