"""Prepare the exemplars of the few-shot prompt."""

import json
from collections.abc import Sequence

from script_helpers import parse_arguments, run
from zerogap.data.prompts import exemplars
from zerogap.io import atomic


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(__doc__, "output", argv=argv)

    shots = exemplars(args.parameters["source"], args.parameters["num_shots"])
    with atomic.replacing(args.output) as temporary:
        temporary.write_text(json.dumps(shots, ensure_ascii=False, indent=2) + "\n")
    print(f"{len(shots)} exemplars")


if __name__ == "__main__":
    run(main)
