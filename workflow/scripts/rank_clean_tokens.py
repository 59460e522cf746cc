"""Rank the clean model's greedy tokens under the contaminated model (Figure 1 b, d)."""

from collections.abc import Sequence

from script_helpers import parse_arguments, run
from zerogap import gpus
from zerogap.sampling import jobs


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(
        __doc__,
        "model",
        "questions",
        "exemplars",
        "clean-greedy",
        "output",
        argv=argv,
    )
    gpus.claim()
    jobs.rank_clean_tokens(
        model=args.model,
        questions=args.questions,
        exemplars=args.exemplars,
        clean_greedy=args.clean_greedy,
        output=args.output,
        **args.parameters,
    )


if __name__ == "__main__":
    run(main)
