"""Train a LoRA adapter with `llamafactory-cli train`; keeps its YAML and loss curve, resumes."""

import argparse
import shutil
from pathlib import Path

from arguments import json_argument, run
from zerogap import gpus
from zerogap.families import AUTO, FAMILIES
from zerogap.io import parquet
from zerogap.io.resume import resumable_dir
from zerogap.training.llamafactory import launching, resuming, settings


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="model to start from")
    parser.add_argument("--family", choices=[AUTO, *FAMILIES], default=AUTO)
    parser.add_argument("--data", type=Path, required=True, help="folder of lora_data.py")
    parser.add_argument("--training", type=json_argument, required=True)
    parser.add_argument("--facts", type=json_argument, required=True, help="model and benchmark")
    parser.add_argument("--settings", type=Path, required=True, help="YAML to be written")
    parser.add_argument("--adapter", type=Path, required=True, help="folder to be written")
    parser.add_argument("--loss", type=Path, required=True, help="TSV to be written")
    args = parser.parse_args(argv)

    gpus.claim(args.training["num_gpus"])
    given = (args.base, args.data, args.family, args.training)
    with resumable_dir(args.adapter, resuming.training_fingerprint(*given)) as work:
        trained = work / "adapter"
        sections = settings.train_settings(*given, trained)
        settings.write_settings(args.settings, sections)
        resuming.remove_incomplete_checkpoints(trained, args.training["num_gpus"])
        launching.run("train", args.settings, args.training["num_gpus"])
        curve = launching.loss_curve(trained, args.facts["model"], args.facts["benchmark"])
        with parquet.atomic(args.loss) as temporary:
            curve.to_csv(temporary, sep="\t", index=False)
        for checkpoint in trained.glob("checkpoint-*"):
            shutil.rmtree(checkpoint)
        shutil.rmtree(args.adapter, ignore_errors=True)
        trained.rename(args.adapter)


if __name__ == "__main__":
    run(main)
