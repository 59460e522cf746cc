"""The claims sheet: each claim of the paper, judged on this run."""

import argparse
from pathlib import Path

import pandas as pd

from arguments import json_argument, run
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.reporting import claims, tables
from zerogap.reporting.render import Cell


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metrics", type=Path, nargs="+", required=True)
    parser.add_argument("--setting", nargs=2, required=True, metavar=("MODEL", "BENCHMARK"))
    parser.add_argument("--readouts", type=Path, required=True, help="CSV of readouts.py")
    parser.add_argument("--memorisation", type=Path, required=True, help="CSV of memorisation.py")
    parser.add_argument("--labels", type=json_argument, default={})
    parser.add_argument("--scale", required=True, help="a sentence on the size of the run")
    parser.add_argument("--facts", type=json_argument, default={})
    parser.add_argument("--output", required=True, help="prefix: .md .html .csv")
    args = parser.parse_args(argv)

    collapse = _column(args.memorisation, "collapse")
    evidence = claims.Evidence(
        readings=tables.MetricTable(parquet.read(path, "metrics") for path in args.metrics),
        setting=tuple(args.setting),
        numbers=_column(args.readouts, "value"),
        collapse={tuple(key.split("/")): cell for key, cell in collapse.items()},
        labels=tables.Labels.from_mapping(args.labels),
    )
    facts = provenance(**args.facts)
    claims.save(claims.judge(evidence), args.scale, args.output, facts)


def _column(path: Path, name: str) -> dict[str, Cell]:
    """A column of a table's CSV with its interval, by row key."""
    try:
        rows = pd.read_csv(path).set_index("key")[[name, f"{name}_ci_low", f"{name}_ci_high"]]
    except (OSError, KeyError) as error:
        raise InputError(
            f"{path}: not a table with key, {name} and its interval: {error}"
        ) from error
    cells = {}
    for key, *reading in rows.itertuples():
        value, low, high = (None if pd.isna(x) else float(x) for x in reading)
        cells[str(key)] = Cell(value, low, high)
    return cells


if __name__ == "__main__":
    run(main)
