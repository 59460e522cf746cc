"""Figure 1: overlap with the greedy trajectory, and the rank of the clean model's token."""

import argparse
from pathlib import Path

from arguments import run
from zerogap.io import parquet
from zerogap.reporting import figures


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--overlap", type=Path, required=True)
    parser.add_argument("--ranks", type=Path, required=True)
    parser.add_argument("--title", default="")
    parser.add_argument("--output", required=True, help="prefix: .pdf .png .svg")
    args = parser.parse_args(argv)

    overlap, ranks = parquet.read(args.overlap, "overlap"), parquet.read(args.ranks, "ranks")
    figures.save(figures.mechanism(overlap, ranks, args.title), args.output)


if __name__ == "__main__":
    run(main)
