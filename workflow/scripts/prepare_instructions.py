"""Instruction examples, as filler between the questions of every training set."""

import argparse
from pathlib import Path

from arguments import json_argument, run
from zerogap.data import openorca
from zerogap.data.toy.instructions import instructions


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--source",
        type=json_argument,
        required=True,
        help='{"kind": "generated"}, {"kind": "files", "path"} or '
        '{"kind": "hub", "repository", "revision"}',
    )
    parser.add_argument("--n", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args(argv)

    match args.source["kind"]:
        case "generated":
            examples = instructions(args.n, args.seed)
        case "files":
            examples = openorca.load(args.source["path"], args.n, args.seed)
        case "hub":
            repository, revision = args.source["repository"], args.source["revision"]
            examples = openorca.from_hub(repository, revision, args.n, args.seed)
        case kind:
            raise ValueError(kind)
    openorca.write(args.output, examples)
    print(f"{len(examples)} instruction examples")


if __name__ == "__main__":
    run(main)
