"""Merge a LoRA adapter into its base with `llamafactory-cli export`; keeps its YAML."""

from collections.abc import Sequence

from script_helpers import parse_arguments, run
from zerogap.training.llamafactory import launching, settings


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(__doc__, "base", "adapter", "settings", "output", argv=argv)
    training = args.parameters["training"]

    sections = settings.export_settings(args.base, args.adapter, args.output, training)
    settings.write_settings(args.settings, sections)
    launching.run("export", args.settings)


if __name__ == "__main__":
    run(main)
