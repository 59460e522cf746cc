"""Localise the shortcut neurons of a contaminated model: comparative and causal scores."""

from collections.abc import Sequence

from script_helpers import parse_arguments, run
from zerogap import gpus
from zerogap.sampling import localisation


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(
        __doc__,
        "contaminated",
        "clean",
        "base-model",
        "questions",
        "exemplars",
        "greedy",
        "output",
        sharded=True,
        decodes=True,
        argv=argv,
    )
    gpus.claim()
    localisation.localise_neurons(
        contaminated=args.contaminated,
        clean=args.clean,
        base_model=args.base_model,
        questions=args.questions,
        exemplars=args.exemplars,
        greedy=args.greedy,
        output=args.output,
        shard=tuple(args.shard),
        **args.parameters,
    )


if __name__ == "__main__":
    run(main)
