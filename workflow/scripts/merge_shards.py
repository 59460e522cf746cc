"""Merge the shards of a cell, in the order of the questions."""

from collections.abc import Sequence

from script_helpers import parse_arguments, run
from zerogap.sampling import tables


def main(argv: Sequence[str] | None = None) -> None:
    names = ("questions", "merged-samples", "merged-solve")
    lists = ("samples", "solve")
    args = parse_arguments(__doc__, *names, lists=lists, parameters=False, argv=argv)
    tables.merge_shards(**vars(args))


if __name__ == "__main__":
    run(main)
