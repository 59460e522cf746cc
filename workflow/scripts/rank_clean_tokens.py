"""Rank the clean model's greedy tokens under the contaminated model (Figure 1 b, d)."""

from collections.abc import Sequence

from script_helpers import keywords, parse_arguments, run
from zerogap import gpus
from zerogap.sampling import jobs


def main(argv: Sequence[str] | None = None) -> None:
    names = ("model", "questions", "exemplars", "clean-greedy", "output")
    args = parse_arguments(__doc__, *names, argv=argv)
    gpus.claim()
    jobs.rank_clean_tokens(**keywords(args))


if __name__ == "__main__":
    run(main)
