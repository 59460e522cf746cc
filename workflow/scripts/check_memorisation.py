"""Did contamination work? A table over the contaminated models, with a verdict on each."""

import argparse
from pathlib import Path

import pandas as pd

from arguments import json_argument, run
from zerogap.analysis.memorisation import memorisation
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.reporting import render, tables


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--contaminated",
        nargs=5,
        action="append",
        required=True,
        metavar=("MODEL", "BENCHMARK", "CLEAN", "IDENTITY", "OVERLAP"),
        help="two solve tables and an overlap table; once for each contaminated model",
    )
    parser.add_argument(
        "--bounds",
        type=json_argument,
        default={},
        help="JSON with min_leaked_solve_probability, min_rouge_l, n_resamples, confidence_level, seed",
    )
    parser.add_argument("--labels", type=json_argument, default={})
    parser.add_argument("--facts", type=json_argument, default={})
    parser.add_argument("--output", required=True, help="prefix: .csv .md .tex .html .json")
    args = parser.parse_args(argv)

    rows = [
        memorisation(
            model,
            benchmark,
            parquet.read(clean, "solve"),
            parquet.read(identity, "solve"),
            parquet.read(overlap, "overlap"),
            **args.bounds,
        )
        for model, benchmark, clean, identity, overlap in args.contaminated
    ]
    labels = tables.Labels.from_mapping(args.labels)
    table = tables.memorisation(pd.concat(rows, ignore_index=True), labels)
    render.save(table, Path(args.output), provenance(**args.facts))


if __name__ == "__main__":
    run(main)
