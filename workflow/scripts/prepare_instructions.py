"""Prepare the instruction examples that are mixed into every training."""

from pathlib import Path
from typing import Any

from script_helpers import run
from zerogap.data import openorca, toy
from zerogap.io.text_files import write_json_lines


def main(output: Path, *, source: str, options: Any, num_examples: int, seed: int) -> None:
    match source:
        case "generated":
            examples = toy.instructions(num_examples, seed)
        case "files":
            examples = openorca.load(options, num_examples, seed)
        case _:
            repository, revision = options["repository"], options["revision"]
            examples = openorca.from_hub(repository, revision, num_examples, seed)
    write_json_lines(output, examples)
    print(f"{len(examples)} instruction examples")


if __name__ == "__main__":
    run(main)
