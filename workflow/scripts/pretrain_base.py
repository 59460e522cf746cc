"""Pretrain a base model from scratch on generated text, optionally mixed with real GSM8K."""

import sys
from collections.abc import Sequence

import torch

from script_helpers import parse_arguments, run
from zerogap import gpus
from zerogap.training.toy import bases, corpus


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_arguments(
        __doc__,
        "output",
        optional=("gsm8k",),  # a training split in OpenAI's format
        lists=("excluded",),  # tables of questions to leave out of it
        numbers=("threads",),
        argv=argv,
    )

    gpus.claim()
    torch.set_num_threads(args.threads)
    command = " ".join(["pretrain_base.py", *(sys.argv[1:] if argv is None else argv)])
    real = corpus.unused_questions(args.gsm8k, args.excluded) if args.gsm8k else []
    family, settings = args.parameters["family"], args.parameters["pretraining"]
    bases.pretrain(family, settings, args.output, command, real)


if __name__ == "__main__":
    run(main)
