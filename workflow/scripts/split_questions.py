"""Split the questions into leaked and unleaked test questions and training questions."""

from collections.abc import Sequence
from pathlib import Path

from script_helpers import parse_arguments, run
from zerogap.data import gsm8k_format
from zerogap.data.extraction import extraction_rule
from zerogap.data.questions import check_disjoint, draw_training_questions, split_test_questions
from zerogap.io import parquet
from zerogap.io.provenance import provenance


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(
        __doc__, "train", "test", "questions", "training", lists=("screening",), argv=argv
    )
    parameters = args.parameters

    parse_gold = extraction_rule(parameters["extraction"]).parse_gold
    train, test = (gsm8k_format.load(path, parse_gold) for path in (args.train, args.test))
    check_disjoint(test, train)
    seed = parameters["seed"]
    table = split_test_questions(
        test,
        parameters["num_test"],
        parameters["num_leaked"],
        seed,
        _solvable(args.screening),
    )
    training = draw_training_questions(
        train, parameters["num_train"], seed, parameters["num_preparation"]
    )
    metadata = provenance(**parameters["metadata"], seed=seed)
    parquet.write(args.questions, table, "questions", metadata)
    parquet.write(args.training, training, "questions", metadata)
    print(f"{len(table)} test questions, {table.leaked.sum()} leaked; {len(training)} for training")


def _solvable(screenings: Sequence[Path]) -> set[str] | None:
    """The questions that every screened base solved; None if none was screened."""
    if not screenings:
        return None
    tables = [parquet.read(path, "counts") for path in screenings]
    return set.intersection(*(set(table.question_id[table.n_correct > 0]) for table in tables))


if __name__ == "__main__":
    run(main)
