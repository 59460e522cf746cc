"""What a LoRA training reads: instructions and questions as LLaMA-Factory's JSON, ids checked."""

import argparse
import json
import sys
from pathlib import Path

from arguments import json_argument, run
from zerogap.data.prompts import DEFAULT_TEMPLATE
from zerogap.io import parquet
from zerogap.training import examples
from zerogap.training.llamafactory.settings import write_datasets


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="model whose tokenizer counts")
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument(
        "--leaks",
        choices=["question", "paraphrase"],
        help="contaminate: take the leaked questions, in this wording; without it, take all",
    )
    parser.add_argument("--instructions", type=Path, required=True)
    parser.add_argument("--exemplars", type=Path, required=True)
    parser.add_argument("--training", type=json_argument, required=True)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args(argv)

    from transformers import AutoTokenizer  # see below

    tokenizer = AutoTokenizer.from_pretrained(args.base)
    questions = parquet.read(args.questions, "questions")
    if args.leaks:
        questions = questions[questions.leaked]
    exemplars = json.loads(args.exemplars.read_text())
    # Not splitlines: a text may hold other line separators.
    lines = args.instructions.read_text(encoding="utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line]
    pairs = {
        "instructions": examples.instruction_pairs(rows),
        "questions": examples.question_pairs(
            questions, exemplars, args.leaks or "question", DEFAULT_TEMPLATE
        ),
    }
    cutoff = args.training["cutoff_len"]
    datasets = {
        name: examples.training_examples(some, tokenizer, cutoff, truncate=name == "instructions")
        for name, some in pairs.items()
    }
    write_datasets(args.output, datasets)


if __name__ == "__main__":
    # A tokenizer needs no torch; transformers loads it where it finds it, for four seconds.
    sys.modules["torch"] = None
    run(main)
