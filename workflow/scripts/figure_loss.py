"""Training loss of every model, from TSV files with model, benchmark, step, loss."""

import argparse
from pathlib import Path

import pandas as pd

from arguments import json_argument, run
from zerogap.errors import InputError
from zerogap.reporting import figures
from zerogap.reporting.tables import Labels


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--losses", type=Path, nargs="+", required=True)
    parser.add_argument("--labels", type=json_argument, default={})
    parser.add_argument("--output", required=True, help="prefix: .pdf .png .svg")
    args = parser.parse_args(argv)

    if missing := [str(path) for path in args.losses if not path.is_file()]:
        raise InputError(f"{missing[0]}: no such file")
    losses = pd.concat([pd.read_csv(path, sep="\t") for path in args.losses], ignore_index=True)
    labels = Labels.from_mapping(args.labels)
    figures.save(figures.loss(losses, {**labels.models, **labels.benchmarks}), args.output)


if __name__ == "__main__":
    run(main)
