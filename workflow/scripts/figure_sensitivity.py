"""SA-PPG of every strategy against the number of strata and of samples a question."""

import argparse
from pathlib import Path

from arguments import json_argument, run
from zerogap import store
from zerogap.metrics.sensitivity import sensitivity
from zerogap.reporting import figures
from zerogap.reporting.tables import Labels


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clean", type=Path, required=True)
    parser.add_argument(
        "--strategies", type=json_argument, required=True, help="JSON, strategy: its solve table"
    )
    parser.add_argument("--bins", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--labels", type=json_argument, default={})
    parser.add_argument("--title", default="")
    parser.add_argument("--output", required=True, help="prefix: .pdf .png .svg")
    args = parser.parse_args(argv)

    names = Labels.from_mapping(args.labels).strategies
    strategies = {name: store.read(path, "solve") for name, path in args.strategies.items()}
    clean = store.read(args.clean, "solve")
    table = sensitivity(clean, strategies, bins=args.bins, seed=args.seed)
    figures.save(figures.sensitivity(table, args.title, names), args.output)


if __name__ == "__main__":
    run(main)
