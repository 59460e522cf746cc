"""One of the figures of a setting's solve tables: the clean model's and every strategy's."""

import argparse
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from arguments import json_argument, run
from zerogap.io import parquet
from zerogap.metrics.sensitivity import sensitivity
from zerogap.reporting import figures
from zerogap.reporting.tables import Labels

FIGURES = ["scatter", "strata", "sensitivity"]


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figure", required=True, choices=FIGURES)
    parser.add_argument("--clean", type=Path, required=True)
    parser.add_argument(
        "--strategies", type=json_argument, required=True, help="JSON, strategy: its solve table"
    )
    parser.add_argument("--bins", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0, help="of the sensitivity's subsamples")
    parser.add_argument("--labels", type=json_argument, default={})
    parser.add_argument("--title", default="")
    parser.add_argument("--output", required=True, help="prefix: .pdf .png .svg")
    args = parser.parse_args(argv)

    names = Labels.from_mapping(args.labels).strategies
    strategies = {
        names.get(strategy, strategy): parquet.read(path, "solve")
        for strategy, path in args.strategies.items()
    }
    clean = parquet.read(args.clean, "solve")
    figures.save(_draw(args, clean, strategies), args.output)


def _draw(
    args: argparse.Namespace, clean: pd.DataFrame, strategies: Mapping[str, pd.DataFrame]
) -> Figure:
    if args.figure == "scatter":
        return figures.scatter(clean, strategies, args.title)
    if args.figure == "strata":
        return figures.strata(clean, strategies, args.title, bins=args.bins)
    table = sensitivity(clean, strategies, bins=args.bins, seed=args.seed)
    return figures.sensitivity(table, args.title)


if __name__ == "__main__":
    run(main)
