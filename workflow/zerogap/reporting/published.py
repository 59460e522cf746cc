"""The numbers that the paper publishes: Tables 1–4, the text and the protocol, as data.

They are in ``workflow/resources/published.csv``, a row a number: `place` (table or section),
`model`, `domain`, `strategy`, `metric`, `value`, and `printed`, the paper's own characters.
Sections are counted as in the paper: 5.1 set-up, 5.2 metric experiments, 5.3 strategy experiments.
"""

from pathlib import Path

import pandas as pd

_FILE = Path(__file__).parents[2] / "resources" / "published.csv"
_TEXT = ("place", "model", "domain", "strategy", "metric", "printed")


def published() -> pd.DataFrame:
    """Every published number; text columns are '' where they do not apply."""
    types = dict.fromkeys(_TEXT, str) | {"value": float}
    return pd.read_csv(_FILE, dtype=types, keep_default_na=False)


def as_metrics() -> pd.DataFrame:
    """The numbers of Tables 1–4 as a `metrics` table, without intervals."""
    rows = published()
    rows = rows[rows["place"].str.startswith("Table")]
    keys = ["model", "domain", "strategy", "metric"]
    # SA-PPG of the first setting is in all four tables; they agree (see the tests).
    rows = rows.drop_duplicates(keys)[[*keys, "value"]]
    return rows.assign(subset="all", ci_low=float("nan"), ci_high=float("nan")).reset_index(
        drop=True
    )


def printed(metric: str) -> tuple[float, str, str] | None:
    """A number of the text: its value, the paper's characters and its place; None if unknown."""
    rows = published()
    rows = rows[(rows["metric"] == metric) & ~rows["place"].str.startswith("Table")]
    if rows.empty:
        return None
    row = rows.iloc[0]
    return float(row["value"]), str(row["printed"]), str(row["place"])
