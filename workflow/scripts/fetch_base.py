"""Fetch a base model from the hub: weights, configuration and tokenizer of one revision."""

import argparse
import json
from pathlib import Path

from huggingface_hub import HfApi, snapshot_download

from arguments import run
from zerogap.errors import InputError

WANTED = ["*.json", "*.safetensors", "*.model", "tokenizer*", "*.txt"]


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repository", required=True)
    parser.add_argument("--revision", required=True)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args(argv)

    try:
        commit = HfApi().model_info(args.repository, revision=args.revision).sha
        snapshot_download(
            args.repository, revision=commit, local_dir=args.output, allow_patterns=WANTED
        )
    except Exception as error:  # offline, not found, gated: the hub's libraries raise many kinds
        raise InputError(
            f"models: '{args.repository}' at '{args.revision}' cannot be fetched ({error}). It "
            "must be a folder or a model on the hub; a gated one needs your hub login (HF_TOKEN)"
        ) from error
    origin = {"repository": args.repository, "revision": args.revision, "commit": commit}
    (args.output / "origin.json").write_text(json.dumps(origin, indent=2) + "\n")
    print(f"{args.repository} at {commit}")


if __name__ == "__main__":
    run(main)
