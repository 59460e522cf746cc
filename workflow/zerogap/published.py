"""What the paper publishes: the numbers of Tables 1–4 and of the text, and its protocol, as data.

They are in ``workflow/resources/published.csv``, a row a number: `place` (table or section),
`model`, `benchmark`, `strategy`, `metric`, `value`, and `printed`, the paper's own characters; the
models' names have no value.
Sections are counted as in the paper: 5.1 set-up, 5.2 metric experiments, 5.3 strategy experiments.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

_FILE = Path(__file__).parents[1] / "resources" / "published.csv"
_TEXT = ("place", "model", "benchmark", "strategy", "metric", "printed")


def published() -> pd.DataFrame:
    """Every published number; text columns are '' where they do not apply, `value` NaN."""
    types = dict.fromkeys(_TEXT, str) | {"value": float}
    return pd.read_csv(_FILE, dtype=types, keep_default_na=False, na_values={"value": [""]})


def as_metrics() -> pd.DataFrame:
    """The numbers of Tables 1–4 as a `metrics` table, without intervals."""
    rows = published()
    rows = rows[rows["place"].str.startswith("Table")]
    keys = ["model", "benchmark", "strategy", "metric"]
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


def departures(protocol: Mapping[str, Any]) -> tuple[str, ...]:
    """What makes a run another experiment than the paper's: a phrase each, none where it is one.

    Args:
        protocol: `questions`, their source (generated ones are not the paper's); `base_model`, the
            name or folder of each model, which has to hold the paper's name for it; and any metric
            of section 5.1 with the list of this run's values, which may differ between trainings.
            Models and metrics that only one of the two has are left alone.
    """
    found = ["questions generated, not GSM8K's"] if protocol.get("questions") == "generated" else []
    rows = published()
    for row in rows[rows["place"] == "Section 5.1"].itertuples():
        if row.metric == "base_model":
            base = protocol.get("base_model", {}).get(row.model, row.printed)
            if row.printed.lower() not in base.lower():
                found.append(f"base model {base}, not {row.printed}")
        else:
            values = dict.fromkeys(protocol.get(row.metric, []))
            if any(value != row.value for value in values):
                shown = " and ".join(f"{value:g}" for value in values)
                found.append(f"{row.metric.replace('_', ' ')} {shown}, not {row.printed}")
    return tuple(found)
