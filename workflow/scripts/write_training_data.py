"""Write what a LoRA training reads: instructions and questions as LLaMA-Factory's JSON."""

import json
from pathlib import Path

from script_helpers import Values, run
from zerogap.data.prompts import PromptTemplate
from zerogap.io import parquet
from zerogap.io.text_files import json_lines, read_text
from zerogap.training import examples
from zerogap.training.llamafactory import write_datasets

LEAKED_COLUMN = {"verbatim": "question", "paraphrase": "paraphrase"}


def main(
    base: Path,
    questions: Path,
    output: Path,
    exemplars: Path | None = None,  # of a run, not of a preparation
    instructions: Path | None = None,
    *,
    contamination: str | None,
    prompt: Values,
    cutoff_len: int,
) -> None:
    # After script_helpers, which makes it faster.
    from zerogap.families.tokenizers import load_tokenizer

    tokenizer = load_tokenizer(base)
    table = parquet.read_of_run(questions, "questions")
    column = "question"
    if contamination is not None:
        table, column = table[table.leaked], LEAKED_COLUMN[contamination]
    shots = json.loads(exemplars.read_text("utf-8")) if exemplars else []
    datasets = {}
    if instructions:
        lines = json_lines(instructions, read_text(instructions), dict)
        pairs = examples.instruction_pairs(example for _, example in lines)
        datasets["instructions"] = examples.instruction_examples(pairs, tokenizer, cutoff_len)
    pairs = examples.question_pairs(table, shots, column, PromptTemplate.of(prompt))
    datasets["questions"] = examples.question_examples(pairs, tokenizer, cutoff_len)
    write_datasets(output, datasets)


if __name__ == "__main__":
    run(main)
