"""The report card's page: the answer, the signals, and the most suspicious questions."""

import math
import tempfile
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from zerogap.io.text_files import printable
from zerogap.metrics.gaps import Values
from zerogap.reporting import figures
from zerogap.reporting.render import Table, render_template


def page(
    *,
    title: str,
    paragraphs: Sequence[str],
    tables: Sequence[Table],
    signals: Mapping[str, tuple[Values, Values]],
    suspects: Sequence[Mapping[Any, Any]],
    notes: Sequence[str],
    footer: str,
) -> str:
    """The page, which needs no other file.

    Args:
        title: Model and benchmark.
        paragraphs: The answer, which is shown large, then what explains it.
        tables: Shown under the figure.
        signals: Label to the values on the benchmark's questions, (N,), and on the controls, (M,).
            NaN is left out; each side has a number. Empty without controls.
        suspects: The most suspicious question first. Of each its question_id, question, gold
            answer, greedy response, greedy_correct, solve probability (solved) and that of its
            control (NaN without one), flagged (whether chance is unlikely, also after a correction
            for the number of questions), and a few responses: whether each is correct, and its
            pieces.
        notes: Sentences at the end.
        footer: Last line.
    """
    return render_template(
        "report_card.html.j2",
        title=title,
        paragraphs=paragraphs,
        panels=[(label, *_image(label, *values)) for label, values in signals.items()],
        tables=tables,
        suspects=suspects,
        notes=notes,
        footer=footer,
        printable=lambda text: printable(text, keep="\n\t"),
        isnan=math.isnan,
    )


def _image(label: str, benchmark: Values, controls: Values) -> tuple[str, str]:
    """A panel as a data URI, and the text for readers who do not see it."""
    import matplotlib.pyplot as plt

    figure = figures.plot_signal(benchmark, controls)
    with tempfile.TemporaryDirectory() as folder:
        panel = Path(folder, "panel.svg")
        figures.write(figure, panel)
        image = b64encode(panel.read_bytes()).decode()
    plt.close(figure)
    means = " and ".join(label.get_text() for label in figure.axes[0].get_yticklabels())
    return f"data:image/svg+xml;base64,{image}", f"{label}: {means}".replace("\n", " ")
