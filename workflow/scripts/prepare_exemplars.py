"""The exemplars of the few-shot prompt."""

import argparse
import json
from pathlib import Path

from arguments import run
from zerogap.data.prompts import exemplars
from zerogap.io import parquet


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", choices=("generated", "lm_eval"), required=True)
    parser.add_argument("--n", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args(argv)

    shots = exemplars(args.source, args.n)
    with parquet.atomic(args.output) as temporary:
        temporary.write_text(json.dumps(shots, ensure_ascii=False, indent=2) + "\n")
    print(f"{len(shots)} exemplars")


if __name__ == "__main__":
    run(main)
