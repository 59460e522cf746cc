"""Fetch the training and test questions of a benchmark, in the GSM8K format."""

import argparse
from pathlib import Path

from arguments import json_argument, run
from zerogap.data import gsm8k_format, question_sources
from zerogap.data.extraction import extraction_rule
from zerogap.data.questions import check_disjoint


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--questions", type=json_argument, required=True, help="a benchmark's `questions` section"
    )
    parser.add_argument("--extraction", default="numeric", help="see zerogap.data.extraction")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--test", type=Path, required=True)
    args = parser.parse_args(argv)

    parse_gold = extraction_rule(args.extraction).parse_gold
    entries = question_sources.fetch(args.questions, args.seed, parse_gold)
    outputs = {"train": args.train, "test": args.test}
    for split, path in outputs.items():
        gsm8k_format.write(path, entries[split], parse_gold)
    questions = {split: gsm8k_format.load(path, parse_gold) for split, path in outputs.items()}
    check_disjoint(questions["test"], questions["train"])
    print(f"{len(questions['train'])} training and {len(questions['test'])} test questions")


if __name__ == "__main__":
    run(main)
