"""Pretrain one base model from scratch on generated text, with real GSM8K if wanted."""

import argparse
import sys
from pathlib import Path

import torch

from arguments import json_argument, run
from zerogap import gpus
from zerogap.families import FAMILIES
from zerogap.training.toy import bases, corpus


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", choices=list(FAMILIES), required=True)
    parser.add_argument("--pretraining", type=json_argument, required=True)
    parser.add_argument("--gsm8k", type=Path, help="training split to mix in, OpenAI's format")
    parser.add_argument(
        "--used", type=Path, nargs="*", default=[], help="tables of questions to leave out of it"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args(argv)

    gpus.claim()
    torch.set_num_threads(args.threads)
    command = " ".join(["pretrain_bases.py", *(sys.argv[1:] if argv is None else argv)])
    real = corpus.unused_questions(args.gsm8k, args.used) if args.gsm8k else []
    bases.pretrain(args.family, args.pretraining, args.output, command, real)


if __name__ == "__main__":
    run(main)
