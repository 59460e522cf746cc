"""Find the shortcut neurons of a contaminated model."""

from script_helpers import parse_arguments, run
from zerogap import gpus
from zerogap.sampling import jobs


def main() -> None:
    args = parse_arguments(
        __doc__, "contaminated", "clean", "base-model", "questions", "exemplars", "greedy", "output"
    )
    gpus.claim()
    jobs.localise_neurons(
        contaminated=args.contaminated,
        clean=args.clean,
        base_model=args.base_model,
        questions=args.questions,
        exemplars=args.exemplars,
        greedy=args.greedy,
        output=args.output,
        **args.parameters,
    )


if __name__ == "__main__":
    run(main)
