"""Merge the shards of a cell, in the order of the questions."""

from script_helpers import parse_arguments, run
from zerogap.sampling import jobs


def main() -> None:
    args = parse_arguments(
        __doc__, "questions", "merged-samples", "merged-solve", lists=("samples", "solve")
    )
    jobs.merge_shards(
        questions=args.questions,
        merged_samples=args.merged_samples,
        merged_solve=args.merged_solve,
        samples=args.samples,
        solve=args.solve,
        **args.parameters,
    )


if __name__ == "__main__":
    run(main)
