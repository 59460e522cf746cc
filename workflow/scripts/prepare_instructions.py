"""Prepare the instruction examples that are mixed into every training."""

from collections.abc import Sequence

from script_helpers import parse_arguments, run
from zerogap.data import openorca, toy


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(__doc__, "output", argv=argv)
    parameters = args.parameters

    options, num_examples, seed = (
        parameters["options"],
        parameters["num_examples"],
        parameters["seed"],
    )
    match parameters["source"]:
        case "generated":
            examples = toy.instructions(num_examples, seed)
        case "files":
            examples = openorca.load(options, num_examples, seed)
        case _:
            repository, revision = options["repository"], options["revision"]
            examples = openorca.from_hub(repository, revision, num_examples, seed)
    openorca.write(args.output, examples)
    print(f"{len(examples)} instruction examples")


if __name__ == "__main__":
    run(main)
