"""The test questions, a seeded part of them leaked, and the clean model's training questions."""

import argparse
from pathlib import Path

from arguments import json_argument, run
from zerogap.data import gsm8k_format
from zerogap.data.extraction import extraction_rule
from zerogap.data.questions import (
    check_disjoint,
    draw_training_questions,
    split_test_questions,
)
from zerogap.io import parquet
from zerogap.io.provenance import provenance


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", type=Path, required=True, help="OpenAI's JSON Lines format")
    parser.add_argument("--test", type=Path, required=True, help="OpenAI's JSON Lines format")
    parser.add_argument("--n-test", type=int, default=None, help="all where it is left out")
    parser.add_argument("--n-leaked", type=int, required=True)
    parser.add_argument("--n-train", type=int, default=None, help="all where it is left out")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--extraction", default="numeric", help="see zerogap.data.extraction")
    parser.add_argument("--facts", type=json_argument, default={})
    parser.add_argument("--questions", type=Path, required=True, help="output, no paraphrases yet")
    parser.add_argument("--training", type=Path, required=True, help="output")
    args = parser.parse_args(argv)

    read_gold = extraction_rule(args.extraction).parse_gold
    train, test = (gsm8k_format.load(path, read_gold) for path in (args.train, args.test))
    check_disjoint(test, train)
    facts = provenance(**args.facts, seed=args.seed)
    table = split_test_questions(test, args.n_test, args.n_leaked, args.seed)
    training = draw_training_questions(train, args.n_train, args.seed)
    parquet.write(args.questions, table, "questions", facts)
    parquet.write(args.training, training, "questions", facts)
    print(f"{len(table)} test questions, {table.leaked.sum()} leaked; {len(training)} for training")


if __name__ == "__main__":
    run(main)
