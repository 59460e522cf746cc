"""Draw how costs grow, from the tables of `scaling.py`, `metric_scaling.py` and `dag_size.py`.

python benchmarks/draw_scaling.py docs/benchmarks/scaling.md docs/benchmarks/metrics.md \
  docs/benchmarks/dag.md --output docs/benchmarks/scaling.png

Every panel changes one quantity and keeps the others. The dashed line is proportional growth from
the smallest value.
"""

import argparse
from pathlib import Path

import common  # noqa: F401 (makes zerogap importable)
import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from zerogap.reporting.figures import style

# Column that changes → the other columns with the values that they keep.
SAMPLING = {
    "questions": {"samples": 50, "shared prompt tokens": 108},
    "samples": {"questions": 20, "shared prompt tokens": 108},
    "shared prompt tokens": {"questions": 20, "samples": 50},
}
METRICS = {
    "questions": {"samples": 50, "strategies": 10},
    "strategies": {"questions": 1319, "samples": 50},
}
DRY_RUN: dict[str, dict[str, int]] = {"cells": {}}


def main() -> None:
    """Draw the figure from the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sampling", type=Path, help="table of scaling.py")
    parser.add_argument("metrics", type=Path, help="table of metric_scaling.py")
    parser.add_argument("dry_run", type=Path, help="table of dag_size.py")
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    style.write(draw_figure(args.sampling, args.metrics, args.dry_run), args.output)


def draw_figure(sampling: Path, metrics: Path, dry_run: Path) -> Figure:
    """A panel per quantity that changes."""
    plans = (
        ("sampling", sampling, SAMPLING),
        ("metrics of a setting", metrics, METRICS),
        ("dry run", dry_run, DRY_RUN),
    )
    with style.styled():
        figure, axes = plt.subplots(2, 3, figsize=(6.4, 3.6))
        panels = iter(axes.flat)
        for title, path, quantities in plans:
            table = read_table(path)
            for column, others in quantities.items():
                panel = next(panels)
                draw(panel, table, column, others)
                panel.set_title(title)
        axes[0, 0].legend()
    return figure


def read_table(path: Path) -> pd.DataFrame:
    """The numbers of a Markdown table."""
    lines = [line for line in path.read_text().splitlines() if line.startswith("|")]
    header, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return pd.DataFrame(
        [[float(cell.replace(",", "")) for cell in row] for row in rows], columns=header
    )


def draw(axes: Axes, table: pd.DataFrame, column: str, others: dict[str, int]) -> None:
    """Seconds against one column, where the others have the given values."""
    for name, value in others.items():
        table = table[table[name] == value]
    table = table.sort_values(column)
    proportional = table["seconds"].iloc[0] * table[column] / table[column].iloc[0]
    axes.plot(table[column], proportional, "--", color=style.GREY, label="proportional")
    axes.plot(
        table[column], table["seconds"], "o-", markersize=4, color=style.BLUE, label="measured"
    )
    axes.set(xlim=(0, None), ylim=(0, None), xlabel=column, ylabel="seconds")


if __name__ == "__main__":
    main()
