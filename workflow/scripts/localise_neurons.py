"""Localise the shortcut neurons of a contaminated model: comparative and causal scores."""

from collections.abc import Sequence

from script_helpers import keywords, parse_arguments, run
from zerogap import gpus
from zerogap.sampling import localisation


def main(argv: Sequence[str] | None = None) -> None:
    names = ("contaminated", "clean", "base-model", "questions", "exemplars", "greedy", "output")
    args = parse_arguments(__doc__, *names, sharded=True, decodes=True, argv=argv)
    gpus.claim()
    localisation.localise_neurons(**keywords(args))


if __name__ == "__main__":
    run(main)
