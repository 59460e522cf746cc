"""Merge a LoRA adapter into its base model."""

from collections.abc import Sequence

from script_helpers import parse_arguments, run
from zerogap.training.merging import merge_adapter


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(__doc__, "base", "adapter", "output", argv=argv)
    merge_adapter(args.base, args.adapter, args.output, args.parameters["dtype"])


if __name__ == "__main__":
    run(main)
