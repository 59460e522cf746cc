"""Every metric on leaked and on unleaked questions, of every strategy of one setting."""

import argparse
from pathlib import Path

from arguments import json_argument, run
from zerogap.io import parquet
from zerogap.reporting import figures
from zerogap.reporting.tables import Labels


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metrics", type=Path, required=True)
    parser.add_argument("--strategies", nargs="+", required=True, help="which rows, from the top")
    parser.add_argument("--labels", type=json_argument, default={})
    parser.add_argument("--title", default="")
    parser.add_argument("--output", required=True, help="prefix: .pdf .png .svg")
    args = parser.parse_args(argv)

    readings = parquet.read(args.metrics, "metrics").set_index("strategy")
    shown = readings.loc[args.strategies].reset_index()
    names = Labels.from_mapping(args.labels).strategies
    figures.save(figures.subsets(shown, args.title, names), args.output)


if __name__ == "__main__":
    run(main)
