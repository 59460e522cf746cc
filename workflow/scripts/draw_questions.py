"""Draw the training questions that a base is prepared on."""

from pathlib import Path

from script_helpers import Values, run
from zerogap.data import gsm8k_format, question_sources
from zerogap.data.extraction import extraction_rule
from zerogap.data.questions import preparation_questions
from zerogap.io import parquet
from zerogap.io.provenance import provenance


def main(
    output: Path,
    *,
    questions: Values,
    extraction: str,
    num_questions: int,
    metadata: Values,
    seed: int,
) -> None:
    parse_gold = extraction_rule(extraction).parse_gold
    entries = question_sources.fetch(questions, seed, parse_gold)["train"]
    candidates = [gsm8k_format.parse(entry, parse_gold) for entry in entries]
    table = preparation_questions(candidates, num_questions)
    parquet.write(output, table, "questions", provenance(**metadata))
    print(f"{len(table)} of {len(candidates)} training questions")


if __name__ == "__main__":
    run(main)
