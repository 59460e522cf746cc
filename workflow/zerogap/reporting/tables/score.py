"""The summary of `zerogap score` as a table."""

import pandas as pd

from zerogap.reporting.render import Cell, Column, Row, Table, optional_float
from zerogap.reporting.tables.rows import difference_notes
from zerogap.scoring.score import BATCH2

DECIMALS = 3
NOISE_FLOOR_NOTE = (
    "The clean model's batch 2 is the noise floor: the value of a perfect restoration."
)
NOT_COMPETING = ("clean", BATCH2, "identity")


def strategy_label(name: str) -> str:
    """The name of a strategy as it is shown."""
    return "clean, batch 2" if name == BATCH2 else name


def score_table(
    summary: pd.DataFrame,
    *,
    bins: int = 50,
    confidence_level: float = 0.95,
    resample: str = "questions",
) -> Table:
    """The main metrics with intervals, one row per strategy and one section per subset.

    The lowest value of the first column is bold; Identity, which is not a strategy, does not
    compete.

    Args:
        summary: From `zerogap.scoring.score.summary`.
        bins: Number of strata.
        confidence_level: Of the intervals.
        resample: What the bootstrap drew again.
    """
    titles = summary.drop_duplicates("metric").set_index("metric")["label"]
    columns = tuple(Column(str(metric), title) for metric, title in titles.items())
    has_sections = summary["subset"].nunique() > 1
    rows = []
    for subset, group in summary.groupby("subset", sort=False):
        best = _best(group, columns[0].key)
        section = f"{subset} ({group['n_questions'].iloc[0]})" if has_sections else ""
        for strategy, values in group.groupby("strategy", sort=False):
            cells = [_cell(values, column.key) for column in columns]
            if strategy in best:
                cells[0] = _cell(values, columns[0].key, bold=True)
            name = str(strategy)
            rows.append(Row(name, strategy_label(name), tuple(cells), section))
    notes = (NOISE_FLOOR_NOTE,) if BATCH2 in set(summary["strategy"]) else ()
    return Table(
        label="tab:score",
        caption=(
            f"Distance from the clean model on {summary['n_questions'].max()} questions, lower is "
            f"better, with {confidence_level * 100:g}% bootstrap intervals over {resample}; {bins} "
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


def _cell(values: pd.DataFrame, metric: str, *, bold: bool = False) -> Cell:
    """The cell of one metric of a strategy."""
    row = values[values["metric"] == metric].iloc[0]
    return Cell(
        optional_float(row["value"]),
        optional_float(row["ci_low"]),
        optional_float(row["ci_high"]),
        bold=bold,
        mark="†" if row["significant"] else "",
    )


def _best(summary: pd.DataFrame, metric: str) -> set[str]:
    """The strategies with the lowest value as printed."""
    competing = summary[(summary["metric"] == metric) & ~summary["strategy"].isin(NOT_COMPETING)]
    printed = competing.set_index("strategy")["value"].round(DECIMALS)
    return set(printed.index[printed == printed.min()])
