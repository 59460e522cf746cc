"""The paper's published numbers and protocol, as data.

They are in ``workflow/resources/published.csv``, one row per number: `place` (table or section),
`model`, `benchmark`, `strategy`, `metric`, `value`, and `printed`, the characters in the paper.
Names of models have no value. Sections are numbered as in the paper: 5.1 setup, 5.2 experiments on
metrics, 5.3 experiments on strategies.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

# In the name of a model that is not a base model.
_INSTRUCTED = re.compile(r"[-_](chat|it|instruct)(?![a-z])", re.IGNORECASE)
_FILE = Path(__file__).parents[1] / "resources" / "published.csv"


def published() -> pd.DataFrame:
    """Every published number; text columns are '' where they do not apply, `value` is NaN."""
    rows = pd.read_csv(_FILE, dtype=str, keep_default_na=False)
    return rows.assign(value=pd.to_numeric(rows["value"]))


def as_metrics(place: str = "Table") -> pd.DataFrame:
    """The numbers of "Table 3", say, or of all tables, as a `metrics` table without intervals."""
    rows = published()
    rows = rows[rows["place"].str.startswith(place)]
    keys = ["model", "benchmark", "strategy", "metric"]
    # SA-PPG of the first setting is in all four tables, with the same values (see the tests).
    rows = rows.drop_duplicates(keys)[[*keys, "value"]]
    nan = float("nan")
    return rows.assign(subset="all", ci_low=nan, ci_high=nan).reset_index(drop=True)


def printed(metric: str) -> tuple[float, str, str] | None:
    """A number of the text: value, characters in the paper, and place; None if unknown."""
    rows = published()
    rows = rows[(rows["metric"] == metric) & ~rows["place"].str.startswith("Table")]
    if rows.empty:
        return None
    row = rows.iloc[0]
    return float(row["value"]), str(row["printed"]), str(row["place"])


def protocol_differences(protocol: Mapping[str, Any]) -> tuple[str, ...]:
    """How a run's protocol differs from the paper's, one phrase per difference.

    Args:
        protocol: `questions`, what they are if not GSM8K's; `base_model`, the name or folder of
            each model, which must contain the paper's name for it; any metric of Section 5.1 with
            the list of this run's values, which may differ between trainings; and
            `other_choices`, phrases. Models and metrics that only the run or only the paper has
            are not compared.
    """
    differences = []
    if questions := protocol.get("questions"):
        differences.append(f"questions {questions}, not GSM8K's")
    rows = published()
    for row in rows[rows["place"] == "Section 5.1"].to_dict("records"):
        metric, printed_value = str(row["metric"]), str(row["printed"])
        if metric == "base_model":
            base = protocol.get("base_model", {}).get(row["model"], printed_value)
            if printed_value.lower() not in base.lower() or _INSTRUCTED.search(base):
                differences.append(f"base model {base}, not {printed_value}")
        else:
            values = dict.fromkeys(protocol.get(metric, []))
            if any(value != row["value"] for value in values):
                shown = " and ".join(f"{value:g}" for value in values)
                differences.append(f"{metric.replace('_', ' ')} {shown}, not {printed_value}")
    return *differences, *protocol.get("other_choices", [])
