"""Figure 2: two sampling batches of one clean model, by 0/1 readout and by solve probability."""

import argparse
from pathlib import Path

from arguments import run
from zerogap.io import parquet
from zerogap.reporting import figures


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch1", type=Path, required=True)
    parser.add_argument("--batch2", type=Path, required=True)
    parser.add_argument("--title", default="")
    parser.add_argument("--output", required=True, help="prefix: .pdf .png .svg")
    args = parser.parse_args(argv)

    batches = parquet.read(args.batch1, "solve"), parquet.read(args.batch2, "solve")
    figures.save(figures.readouts(*batches, args.title), args.output)


if __name__ == "__main__":
    run(main)
