"""Fetch a benchmark's training and test questions, as JSON Lines in OpenAI's GSM8K format."""

from collections.abc import Sequence

from script_helpers import parse_arguments, run
from zerogap.data import gsm8k_format, question_sources
from zerogap.data.extraction import extraction_rule
from zerogap.data.prompts import PromptTemplate, check_targets
from zerogap.data.questions import check_disjoint


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(__doc__, "train", "test", argv=argv)
    parameters = args.parameters

    rule = extraction_rule(parameters["extraction"])
    entries = question_sources.fetch(parameters["questions"], parameters["seed"], rule.parse_gold)
    outputs = {"train": args.train, "test": args.test}
    for split, path in outputs.items():
        gsm8k_format.write(path, entries[split], rule.parse_gold)
    questions = {split: gsm8k_format.load(path, rule.parse_gold) for split, path in outputs.items()}
    check_disjoint(questions["test"], questions["train"])
    template = PromptTemplate.of(parameters["prompt"])
    check_targets([*questions["train"], *questions["test"]], template, parameters["stop"], rule)
    print(f"{len(questions['train'])} training and {len(questions['test'])} test questions")


if __name__ == "__main__":
    run(main)
