"""Fetch a base model from the hub: weights, configuration and tokenizer of one revision."""

import json
import math
import shutil
import time
from pathlib import Path

from huggingface_hub import HfApi, snapshot_download

from script_helpers import run
from zerogap.errors import InputError
from zerogap.io import hub
from zerogap.io.digests import FILES
from zerogap.io.resume import resumable_dir

WAITS = (2.0, 4.0, 8.0)  # seconds between the attempts, unless the hub says how long
MAX_WAIT = 300.0  # seconds that the hub may ask for


def main(output: Path, *, repository: str, revision: str) -> None:
    # Snakemake deletes the output of a failed job. The working folder keeps the complete files.
    with resumable_dir(output, {"repository": repository, "revision": revision}) as folder:
        commit = download(repository, revision, folder / "model")
        shutil.rmtree(folder / "model/.cache", ignore_errors=True)
        origin = {"repository": repository, "revision": revision, "commit": commit}
        (folder / "model/origin.json").write_text(json.dumps(origin, indent=2) + "\n")
        shutil.rmtree(output, ignore_errors=True)
        shutil.move(folder / "model", output)
    print(f"{repository} at {commit}")


def download(repository: str, revision: str, folder: Path) -> str:
    """Download what is not in the folder yet; errors that pass are tried again.

    Returns:
        The commit.

    Raises:
        InputError: the model cannot be downloaded.
    """
    waits = iter(WAITS)
    while True:
        try:
            return _download_once(repository, revision, folder)
        except Exception as error:  # the hub's libraries raise many types
            problem = hub.hub_problem(error, repository, revision)
            wait = next(waits, math.inf)
            seconds = hub.retry_after(error) or wait
            if max(wait, seconds) > MAX_WAIT or not hub.is_transient(error):
                raise InputError(f"models: {problem}") from error
            print(f"{problem}\ntrying again in {seconds:.0f} s", flush=True)
            time.sleep(seconds)


def _download_once(repository: str, revision: str, folder: Path) -> str:
    commit = str(HfApi().model_info(repository, revision=revision).sha)
    snapshot_download(
        repository,
        revision=commit,
        local_dir=folder,
        allow_patterns=FILES,
        ignore_patterns=hub.SECOND_COPIES,
    )
    return commit


if __name__ == "__main__":
    run(main)
