"""Look at what would fail hours into a run; every failure is one line, with its mend."""

import argparse

from arguments import json_argument, run
from zerogap.pipeline import preflight


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=json_argument, required=True)
    args = parser.parse_args(argv)
    print(*preflight.pass_or_stop(args.config), sep="\n")


if __name__ == "__main__":
    run(main)
