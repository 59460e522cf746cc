"""Decode the greedy trajectory of every question, with the entropy of each step."""

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
        "output",
        decodes=True,
        argv=argv,
    )
    gpus.claim()
    jobs.decode_greedy(
        model=args.model,
        questions=args.questions,
        exemplars=args.exemplars,
        output=args.output,
        **args.parameters,
    )


if __name__ == "__main__":
    run(main)
