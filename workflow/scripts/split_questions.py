"""Split the questions into leaked and unleaked test questions and training questions."""

from pathlib import Path

from script_helpers import Values, run
from zerogap.data import gsm8k_format
from zerogap.data.extraction import extraction_rule
from zerogap.data.questions import check_disjoint, draw_training_questions, split_test_questions
from zerogap.io import parquet
from zerogap.io.provenance import provenance


def main(
    train: Path,
    test: Path,
    questions: Path,
    training: Path,
    *,
    num_test: int,
    num_leaked: int,
    num_train: int,
    num_preparation: int,
    max_calculations: int | None,
    extraction: str,
    metadata: Values,
    seed: int,
) -> None:
    parse_gold = extraction_rule(extraction).parse_gold
    trained = gsm8k_format.load(train, parse_gold)
    entries = gsm8k_format.load_entries(test, parse_gold)
    tested = [gsm8k_format.parse(entry, parse_gold) for entry in entries]
    check_disjoint(tested, trained)
    eligible = gsm8k_format.with_few_calculations(entries, max_calculations)
    table = split_test_questions(tested, num_test, num_leaked, seed, eligible)
    drawn = draw_training_questions(trained, num_train, seed, num_preparation)
    made_by = provenance(**metadata, seed=seed)
    parquet.write(questions, table, "questions", made_by)
    parquet.write(training, drawn, "questions", made_by)
    print(f"{len(table)} test questions, {table.leaked.sum()} leaked; {len(drawn)} for training")


if __name__ == "__main__":
    run(main)
