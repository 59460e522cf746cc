"""Whether the contaminated models memorised their leaked questions."""

import pandas as pd

from zerogap.reporting.labels import Labels
from zerogap.reporting.render import Cell, Column, Row, Table


def memorisation(checks: pd.DataFrame, labels: Labels) -> Table:
    """One row per contaminated model, with the verdict and the numbers behind it.

    Args:
        checks: Rows of `zerogap.analysis.memorisation`.
        labels: Names to show.
    """
    columns = (
        Column("clean_leaked", "clean", group="Solved, leaked"),
        Column("identity_leaked", "contaminated", group="Solved, leaked"),
        Column("clean_unleaked", "clean", group="Solved, unleaked"),
        Column("identity_unleaked", "contaminated", group="Solved, unleaked"),
        Column("inflation", "Inflation"),
        Column("rouge_leaked", "leaked", group="ROUGE-L"),
        Column("rouge_unleaked", "unleaked", group="ROUGE-L"),
        Column("clean_rouge_unleaked", "unleaked, clean", group="ROUGE-L"),
        Column("collapse", "Collapse"),
        Column("excess", "Excess"),
        Column("share_verbatim", "Verbatim"),
    )
    rows, notes = [], []
    for row in checks.to_dict("records"):
        setting = labels.setting(row["model"], row["benchmark"])
        cells = [
            Cell(row[c.key], row.get(f"{c.key}_ci_low"), row.get(f"{c.key}_ci_high"))
            for c in columns
        ]
        verdict = Cell(text=row["verdict"])
        rows.append(Row(f"{row['model']}/{row['benchmark']}", setting, (verdict, *cells)))
        notes.append(f"{setting}: {row['verdict']}. {row['text']}")
    return Table(
        label="tab:memorisation",
        caption=(
            "Did the contaminated models memorise the leaked questions? Solved: mean solve "
            "probability. Inflation: its increase on leaked questions minus that on unleaked "
            "ones. ROUGE-L: mean overlap of a response with the model's own greedy response. "
            "Collapse: its difference between leaked and unleaked questions. Excess: its "
            "difference from the clean model's overlap with its own greedy responses, on unleaked "
            "questions. Verbatim: the share of leaked responses that repeat the greedy response."
        ),
        index_label="Contaminated model",
        columns=(Column("verdict", "Verdict", align="l"), *columns),
        rows=tuple(rows),
        notes=tuple(notes),
        decimals=2,
        size="scriptsize",
        column_gap="3pt",
    )
