"""The numbers of the paper's text, measured, beside the published ones."""

import argparse
from dataclasses import replace
from pathlib import Path

from arguments import json_argument, run
from zerogap.analysis.inline_numbers import inline_numbers
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.reporting import render, tables


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clean", type=Path, required=True)
    parser.add_argument("--clean-batch2", type=Path, required=True)
    parser.add_argument(
        "--strategies",
        type=json_argument,
        default={},
        help="JSON, strategy: its solve table; lne_blocking and railcap give the ratios",
    )
    parser.add_argument("--ranks", type=Path)
    parser.add_argument(
        "--metrics",
        type=json_argument,
        default={},
        help="JSON with bins, n_resamples, confidence_level, seed; each may be left out",
    )
    parser.add_argument("--scale", default="", help="a sentence on the size of the run")
    parser.add_argument("--facts", type=json_argument, default={})
    parser.add_argument("--output", required=True, help="prefix: .csv .md .tex .html .json")
    args = parser.parse_args(argv)

    frame = inline_numbers(
        parquet.read(args.clean, "solve"),
        parquet.read(args.clean_batch2, "solve"),
        {name: parquet.read(path, "solve") for name, path in args.strategies.items()},
        parquet.read(args.ranks, "ranks") if args.ranks else None,
        **args.metrics,
    )
    table = tables.readouts(frame)
    if args.scale:
        table = replace(table, notes=(args.scale,))
    render.save(table, args.output, provenance(**args.facts))


if __name__ == "__main__":
    run(main)
