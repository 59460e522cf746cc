"""Sample responses that take the runner-up at one random step of the greedy trajectory."""

from collections.abc import Sequence

from script_helpers import keywords, parse_arguments, run
from zerogap import gpus
from zerogap.sampling import jobs


def main(argv: Sequence[str] | None = None) -> None:
    names = ("model", "questions", "exemplars", "greedy", "output")
    args = parse_arguments(__doc__, *names, decodes=True, argv=argv)
    gpus.claim()
    jobs.measure_recovery(**keywords(args))


if __name__ == "__main__":
    run(main)
