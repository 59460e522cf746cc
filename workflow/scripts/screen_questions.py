"""Sample a prepared base to find the test questions that it can solve."""

from collections.abc import Sequence

from script_helpers import keywords, parse_arguments, run
from zerogap import gpus
from zerogap.sampling import jobs


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(__doc__, "model", "questions", "output", argv=argv)
    gpus.claim()
    jobs.screen_questions(**keywords(args))


if __name__ == "__main__":
    run(main)
