"""Sample responses to every question from one model under one strategy."""

from collections.abc import Sequence

from script_helpers import keywords, parse_arguments, run
from zerogap import gpus
from zerogap.sampling import jobs


def main(argv: Sequence[str] | None = None) -> None:
    names = ("model", "questions", "exemplars", "greedy", "samples", "solve")
    args = parse_arguments(
        __doc__, *names, optional=("base-model", "neurons"), sharded=True, decodes=True, argv=argv
    )
    gpus.claim()
    jobs.sample_cell(**keywords(args))


if __name__ == "__main__":
    run(main)
