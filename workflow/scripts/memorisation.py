"""Did contamination work? A table over the contaminated models, with a verdict on each."""

import argparse
from pathlib import Path

import pandas as pd

from arguments import json_argument, run
from zerogap import store
from zerogap.analysis.memorisation import memorisation
from zerogap.provenance import provenance
from zerogap.reporting import formats, tables


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--contaminated",
        nargs=5,
        action="append",
        required=True,
        metavar=("MODEL", "DOMAIN", "CLEAN", "IDENTITY", "OVERLAP"),
        help="two solve tables and an overlap table; once for each contaminated model",
    )
    parser.add_argument(
        "--bounds",
        type=json_argument,
        default={},
        help="JSON with leaked_solve, leaked_overlap, replicates, level, seed",
    )
    parser.add_argument("--labels", type=json_argument, default={})
    parser.add_argument("--facts", type=json_argument, default={})
    parser.add_argument("--output", required=True, help="prefix: .csv .md .tex .html .json")
    args = parser.parse_args(argv)

    rows = [
        memorisation(
            model,
            domain,
            store.read(clean, "solve"),
            store.read(identity, "solve"),
            store.read(overlap, "overlap"),
            **args.bounds,
        )
        for model, domain, clean, identity, overlap in args.contaminated
    ]
    labels = tables.Labels.from_mapping(args.labels)
    table = tables.memorisation(pd.concat(rows, ignore_index=True), labels)
    formats.save(table, Path(args.output), provenance(**args.facts))


if __name__ == "__main__":
    run(main)
