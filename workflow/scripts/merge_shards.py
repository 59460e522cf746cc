"""Merge the shards of a cell, in the order of the questions."""

from collections.abc import Sequence

from script_helpers import parse_arguments, run
from zerogap.sampling import tables


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(
        __doc__,
        "questions",
        "merged-samples",
        "merged-solve",
        lists=("samples", "solve"),
        parameters=False,
        argv=argv,
    )
    tables.merge_shards(
        samples=args.samples,
        solve=args.solve,
        questions=args.questions,
        merged_samples=args.merged_samples,
        merged_solve=args.merged_solve,
    )


if __name__ == "__main__":
    run(main)
