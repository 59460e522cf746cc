"""Draw the test questions of which a prepared base chooses those that it can solve."""

from collections.abc import Sequence

from script_helpers import parse_arguments, run
from zerogap.data import question_sources
from zerogap.data.extraction import extraction_rule
from zerogap.data.questions import screening_questions
from zerogap.io import parquet
from zerogap.io.provenance import provenance


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(__doc__, "output", argv=argv)
    parameters = args.parameters

    parse_gold = extraction_rule(parameters["extraction"]).parse_gold
    questions = question_sources.fetch_split(
        parameters["questions"], "test", parameters["seed"], parse_gold
    )
    table = screening_questions(questions, parameters["num_candidates"])
    parquet.write(args.output, table, "questions", provenance(**parameters["metadata"]))
    print(f"{len(table)} of {len(questions)} test questions")


if __name__ == "__main__":
    run(main)
