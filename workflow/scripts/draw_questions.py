"""Draw the training questions that a base is prepared on."""

from collections.abc import Sequence

from script_helpers import parse_arguments, run
from zerogap.data import gsm8k_format, question_sources
from zerogap.data.extraction import extraction_rule
from zerogap.data.questions import preparation_questions
from zerogap.io import parquet
from zerogap.io.provenance import provenance


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(__doc__, "output", argv=argv)
    parameters = args.parameters

    parse_gold = extraction_rule(parameters["extraction"]).parse_gold
    entries = question_sources.fetch(parameters["questions"], parameters["seed"], parse_gold)
    questions = [gsm8k_format.parse(entry, parse_gold) for entry in entries["train"]]
    table = preparation_questions(questions, parameters["num_questions"])
    parquet.write(args.output, table, "questions", provenance(**parameters["metadata"]))
    print(f"{len(table)} of {len(questions)} training questions")


if __name__ == "__main__":
    run(main)
