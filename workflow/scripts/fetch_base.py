"""Fetch a base model from the hub: weights, configuration and tokenizer of one revision."""

import json
import shutil
from pathlib import Path

from huggingface_hub import HfApi, snapshot_download

from script_helpers import run
from zerogap.errors import InputError
from zerogap.io import hub
from zerogap.io.resume import resumable_dir

PATTERNS = [*hub.SMALL_FILES, *hub.WEIGHTS]


def main(output: Path, *, repository: str, revision: str) -> None:
    # Snakemake deletes the output of a failed job. The working folder keeps the complete files.
    with resumable_dir(output, {"repository": repository, "revision": revision}) as work:
        folder = work / "model"
        try:
            commit = str(HfApi().model_info(repository, revision=revision).sha)
            snapshot_download(
                repository, revision=commit, local_dir=folder, allow_patterns=PATTERNS
            )
        except Exception as error:  # the hub's libraries raise many types
            problem = hub.hub_problem(error, repository, revision)
            raise InputError(f"models: {problem}") from error
        shutil.rmtree(folder / ".cache", ignore_errors=True)
        origin = {"repository": repository, "revision": revision, "commit": commit}
        (folder / "origin.json").write_text(json.dumps(origin, indent=2) + "\n")
        shutil.rmtree(output, ignore_errors=True)
        shutil.move(folder, output)
    print(f"{repository} at {commit}")


if __name__ == "__main__":
    run(main)
