"""Train a LoRA adapter with `llamafactory-cli train`; keeps its YAML and loss curve, resumes."""

import os
import shutil
from pathlib import Path

import yaml

from script_helpers import Values, run
from zerogap import gpus
from zerogap.io import atomic
from zerogap.io.resume import resumable_dir
from zerogap.training import llamafactory, resuming


def main(
    base: Path,
    data: Path,
    settings: Path,
    adapter: Path,
    loss: Path,
    *,
    family: str,
    training: Values,
    metadata: Values,
) -> None:
    if training["device"] == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # LLaMA-Factory loads onto a GPU that it sees
    else:
        gpus.claim(training["num_gpus"])
    llamafactory.check_device(training)
    inputs = (data, family, training)
    fingerprint = resuming.training_fingerprint(base, *inputs)
    with resumable_dir(adapter, fingerprint) as work:
        trained = work / "adapter"
        loaded = llamafactory.base_to_load(base, training, work / "base")
        values = llamafactory.train_settings(loaded, *inputs, trained)
        settings.write_text(yaml.safe_dump(values, sort_keys=False))
        resuming.remove_incomplete_checkpoints(trained, training["num_gpus"])
        llamafactory.train(settings, training["num_gpus"])
        llamafactory.name_base(trained, base)
        losses = llamafactory.loss_curve(trained, metadata["model"], metadata["variant"])
        with atomic.replacing(loss) as temporary:
            losses.to_csv(temporary, sep="\t", index=False)
        # Copied, so that a job that is killed here still has its checkpoints.
        shutil.rmtree(adapter, ignore_errors=True)
        shutil.copytree(trained, adapter, ignore=shutil.ignore_patterns("checkpoint-*"))


if __name__ == "__main__":
    run(main)
