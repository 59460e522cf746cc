"""Merge the shards of a neuron localisation and select the shortcut neurons."""

from collections.abc import Sequence

from script_helpers import parse_arguments, run
from zerogap.sampling import localisation


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(__doc__, "output", lists=("shards",), parameters=False, argv=argv)
    localisation.merge_neurons(**vars(args))


if __name__ == "__main__":
    run(main)
