"""Sample responses that take the runner-up at one random step of the greedy trajectory."""

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
        "greedy",
        "output",
        decodes=True,
        argv=argv,
    )
    gpus.claim()
    jobs.measure_recovery(
        model=args.model,
        questions=args.questions,
        exemplars=args.exemplars,
        greedy=args.greedy,
        output=args.output,
        **args.parameters,
    )


if __name__ == "__main__":
    run(main)
