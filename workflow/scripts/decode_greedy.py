"""Decode the greedy trajectory of every question, with the entropy of each step."""

from collections.abc import Sequence

from script_helpers import keywords, parse_arguments, run
from zerogap import gpus
from zerogap.sampling import jobs


def main(argv: Sequence[str] | None = None) -> None:
    names = ("model", "questions", "exemplars", "output")
    args = parse_arguments(__doc__, *names, decodes=True, argv=argv)
    gpus.claim()
    jobs.decode_greedy(**keywords(args))


if __name__ == "__main__":
    run(main)
