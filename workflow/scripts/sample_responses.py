"""Sample responses to every question from one model under one strategy."""

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
        "samples",
        "solve",
        optional=(
            "base-model",
            "neurons",
        ),
        sharded=True,
        decodes=True,
        argv=argv,
    )
    gpus.claim()
    jobs.sample_cell(
        model=args.model,
        questions=args.questions,
        exemplars=args.exemplars,
        greedy=args.greedy,
        samples=args.samples,
        solve=args.solve,
        base_model=args.base_model,
        neurons=args.neurons,
        shard=tuple(args.shard),
        **args.parameters,
    )


if __name__ == "__main__":
    run(main)
