"""Draw the questions with which a base is made ready for all runs: prepared, or screened."""

from collections.abc import Sequence

from script_helpers import parse_arguments, run
from zerogap.data import gsm8k_format, question_sources
from zerogap.data.extraction import extraction_rule
from zerogap.data.questions import RESERVED_SPLITS, reserved_questions
from zerogap.io import parquet
from zerogap.io.provenance import provenance


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(__doc__, "output", argv=argv)
    parameters = args.parameters

    parse_gold = extraction_rule(parameters["extraction"]).parse_gold
    split = RESERVED_SPLITS[parameters["use"]]
    entries = question_sources.fetch(parameters["questions"], parameters["seed"], parse_gold)
    questions = [gsm8k_format.parse(entry, parse_gold) for entry in entries[split]]
    table = reserved_questions(questions, parameters["num_questions"], parameters["use"])
    parquet.write(args.output, table, "questions", provenance(**parameters["metadata"]))
    print(f"{len(table)} of {len(questions)} questions of the split {split}")


if __name__ == "__main__":
    run(main)
