"""Train a LoRA adapter with `llamafactory-cli train`; keeps its YAML and loss curve, resumes."""

import argparse
import shutil
from pathlib import Path

from arguments import json_argument, run
from zerogap import gpus
from zerogap.families import FAMILIES
from zerogap.io import parquet
from zerogap.io.resume import resumable_dir
from zerogap.training import llamafactory


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="model to start from")
    parser.add_argument("--family", choices=list(FAMILIES), required=True)
    parser.add_argument("--data", type=Path, required=True, help="folder of lora_data.py")
    parser.add_argument("--training", type=json_argument, required=True)
    parser.add_argument("--facts", type=json_argument, required=True, help="model and benchmark")
    parser.add_argument("--settings", type=Path, required=True, help="YAML to be written")
    parser.add_argument("--adapter", type=Path, required=True, help="folder to be written")
    parser.add_argument("--loss", type=Path, required=True, help="TSV to be written")
    args = parser.parse_args(argv)

    gpus.claim(args.training["gpus"])
    given = (args.base, args.data, args.family, args.training)
    with resumable_dir(args.adapter, llamafactory.origin(*given)) as work:
        trained = work / "adapter"
        sections = llamafactory.train_sections(*given, trained)
        llamafactory.write_settings(args.settings, sections)
        llamafactory.leave_whole_checkpoints(trained, args.training["gpus"])
        llamafactory.run("train", args.settings, args.training["gpus"])
        curve = llamafactory.losses(trained, args.facts["model"], args.facts["benchmark"])
        with parquet.atomic(args.loss) as temporary:
            curve.to_csv(temporary, sep="\t", index=False)
        for checkpoint in trained.glob("checkpoint-*"):
            shutil.rmtree(checkpoint)
        shutil.rmtree(args.adapter, ignore_errors=True)
        trained.rename(args.adapter)


if __name__ == "__main__":
    run(main)
