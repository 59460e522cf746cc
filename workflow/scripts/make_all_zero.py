"""The trivial strategy that fails every question, as a `solve` table (paper, section 5.2.2)."""

import argparse
from pathlib import Path

from arguments import json_argument, run
from zerogap.io import parquet
from zerogap.io.provenance import provenance


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--clean", type=Path, required=True, help="solve table to take the shape of"
    )
    parser.add_argument("--facts", type=json_argument, default={})
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args(argv)

    solve = parquet.read(args.clean, "solve").assign(n_correct=0, first_correct=False)
    parquet.write(args.output, solve, "solve", provenance(**args.facts))


if __name__ == "__main__":
    run(main)
