"""ROUGE-L between every sampled response and the model's own greedy response."""

import argparse
from pathlib import Path

from arguments import json_argument, run
from zerogap.analysis.overlap import overlap
from zerogap.io import parquet
from zerogap.io.provenance import provenance


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=Path, required=True)
    parser.add_argument("--greedy", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--facts", type=json_argument, default={})
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args(argv)

    table = overlap(
        parquet.read(args.samples, "samples"),
        parquet.read(args.greedy, "greedy"),
        parquet.read(args.questions, "questions"),
    )
    parquet.write(args.output, table, "overlap", provenance(**args.facts))


if __name__ == "__main__":
    run(main)
