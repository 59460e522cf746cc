"""Split the questions into leaked and unleaked test questions and training questions."""

from collections.abc import Sequence

from script_helpers import parse_arguments, run
from zerogap.data import gsm8k_format
from zerogap.data.extraction import extraction_rule
from zerogap.data.questions import check_disjoint, draw_training_questions, split_test_questions
from zerogap.io import parquet
from zerogap.io.provenance import provenance


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(__doc__, "train", "test", "questions", "training", argv=argv)
    parameters = args.parameters

    parse_gold = extraction_rule(parameters["extraction"]).parse_gold
    train, test = (gsm8k_format.load(path, parse_gold) for path in (args.train, args.test))
    check_disjoint(test, train)
    entries = gsm8k_format.load_entries(args.test, parse_gold)
    eligible = gsm8k_format.with_few_calculations(entries, parameters["max_calculations"])
    seed = parameters["seed"]
    table = split_test_questions(
        test,
        parameters["num_test"],
        parameters["num_leaked"],
        seed,
        eligible,
    )
    training = draw_training_questions(
        train, parameters["num_train"], seed, parameters["num_preparation"]
    )
    metadata = provenance(**parameters["metadata"], seed=seed)
    parquet.write(args.questions, table, "questions", metadata)
    parquet.write(args.training, training, "questions", metadata)
    print(f"{len(table)} test questions, {table.leaked.sum()} leaked; {len(training)} for training")


if __name__ == "__main__":
    run(main)
