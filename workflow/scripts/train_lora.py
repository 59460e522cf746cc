"""Train a LoRA adapter with `llamafactory-cli train`; keeps its YAML and loss curve, resumes."""

import shutil
from collections.abc import Sequence

import yaml

from script_helpers import parse_arguments, run
from zerogap import gpus
from zerogap.io import atomic
from zerogap.io.resume import resumable_dir
from zerogap.training import llamafactory, resuming


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(__doc__, "base", "data", "settings", "adapter", "loss", argv=argv)
    training, metadata = args.parameters["training"], args.parameters["metadata"]

    if training["device"] != "cpu":
        gpus.claim(training["num_gpus"])
    llamafactory.check_device(training)
    inputs = (args.data, args.parameters["family"], training)
    fingerprint = resuming.training_fingerprint(args.base, *inputs)
    with resumable_dir(args.adapter, fingerprint) as work:
        adapter = work / "adapter"
        base = llamafactory.base_to_load(args.base, training, work / "base")
        settings = llamafactory.train_settings(base, *inputs, adapter)
        args.settings.write_text(yaml.safe_dump(settings, sort_keys=False))
        resuming.remove_incomplete_checkpoints(adapter, training["num_gpus"])
        llamafactory.train(args.settings, training["num_gpus"])
        llamafactory.name_base(adapter, args.base)
        losses = llamafactory.loss_curve(adapter, metadata["model"], metadata["variant"])
        with atomic.replacing(args.loss) as temporary:
            losses.to_csv(temporary, sep="\t", index=False)
        # Copied, so that a job that is killed here still has its checkpoints.
        shutil.rmtree(args.adapter, ignore_errors=True)
        shutil.copytree(adapter, args.adapter, ignore=shutil.ignore_patterns("checkpoint-*"))


if __name__ == "__main__":
    run(main)
