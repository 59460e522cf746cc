"""Apply a strategy that filters the responses of another one."""

from script_helpers import parse_arguments, run
from zerogap.sampling import jobs


def main() -> None:
    args = parse_arguments(__doc__, "questions", "greedy", "source", "samples", "solve")
    jobs.filter_responses(
        questions=args.questions,
        greedy=args.greedy,
        source=args.source,
        samples=args.samples,
        solve=args.solve,
        **args.parameters,
    )


if __name__ == "__main__":
    run(main)
