"""Fetch a base model from the hub: weights, configuration and tokenizer of one revision."""

import json
from collections.abc import Sequence

from huggingface_hub import HfApi, snapshot_download

from script_helpers import parse_arguments, run
from zerogap.errors import InputError

PATTERNS = ["*.json", "*.safetensors", "*.model", "tokenizer*", "*.txt"]


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(__doc__, "output", argv=argv)
    repository, revision = args.parameters["repository"], args.parameters["revision"]

    try:
        commit = HfApi().model_info(repository, revision=revision).sha
        snapshot_download(
            repository, revision=commit, local_dir=args.output, allow_patterns=PATTERNS
        )
    except Exception as error:  # offline, not found, gated: the hub's libraries raise many types
        raise InputError(
            f"models: '{repository}' at '{revision}' cannot be downloaded ({error}). It must be a "
            "folder or a model on the hub; a gated model needs your hub login (HF_TOKEN)"
        ) from error
    origin = {"repository": repository, "revision": revision, "commit": commit}
    (args.output / "origin.json").write_text(json.dumps(origin, indent=2) + "\n")
    print(f"{repository} at {commit}")


if __name__ == "__main__":
    run(main)
