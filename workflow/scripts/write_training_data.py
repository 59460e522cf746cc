"""Write what a LoRA training reads: instructions and questions as LLaMA-Factory's JSON."""

import json
from collections.abc import Sequence

from script_helpers import parse_arguments, run
from zerogap.data.prompts import PromptTemplate
from zerogap.io import parquet
from zerogap.training import examples
from zerogap.training.llamafactory import write_datasets

LEAKED_COLUMN = {"verbatim": "question", "paraphrase": "paraphrase"}


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(
        __doc__,
        "base",
        "questions",
        "output",
        optional=("exemplars", "instructions"),  # a preparation has neither
        argv=argv,
    )
    from transformers import AutoTokenizer  # after script_helpers, which makes it faster

    contamination = args.parameters["contamination"]

    tokenizer = AutoTokenizer.from_pretrained(args.base)
    questions = parquet.read_of_run(args.questions, "questions")
    column = "question"
    if contamination is not None:
        questions = questions[questions.leaked]
        column = LEAKED_COLUMN[contamination]
    exemplars = json.loads(args.exemplars.read_text()) if args.exemplars else []
    template = PromptTemplate.of(args.parameters["prompt"])
    cutoff_len = args.parameters["cutoff_len"]
    datasets = {}
    if args.instructions:
        # Not splitlines: a text may contain other line separators.
        lines = args.instructions.read_text(encoding="utf-8").split("\n")
        instructions = [json.loads(line) for line in lines if line]
        datasets["instructions"] = examples.instruction_examples(
            examples.instruction_pairs(instructions), tokenizer, cutoff_len
        )
    datasets["questions"] = examples.question_examples(
        examples.question_pairs(questions, exemplars, column, template), tokenizer, cutoff_len
    )
    write_datasets(args.output, datasets)


if __name__ == "__main__":
    run(main)
