"""Fetch a benchmark's training and test questions, as JSON Lines in OpenAI's GSM8K format."""

from collections.abc import Sequence
from pathlib import Path

from script_helpers import Values, run
from zerogap.data import gsm8k_format, question_sources
from zerogap.data.extraction import extraction_rule
from zerogap.data.prompts import PromptTemplate, check_targets
from zerogap.data.questions import check_disjoint


def main(
    train: Path,
    test: Path,
    *,
    questions: Values,
    extraction: str,
    prompt: Values,
    stop: Sequence[str],
    seed: int,
) -> None:
    rule = extraction_rule(extraction)
    entries = question_sources.fetch(questions, seed, rule.parse_gold)
    for split, path in (("train", train), ("test", test)):
        gsm8k_format.write(path, entries[split], rule.parse_gold)
    training, tested = (gsm8k_format.load(path, rule.parse_gold) for path in (train, test))
    check_disjoint(tested, training)
    check_targets([*training, *tested], PromptTemplate.of(prompt), stop, rule)
    print(f"{len(training)} training and {len(tested)} test questions")


if __name__ == "__main__":
    run(main)
