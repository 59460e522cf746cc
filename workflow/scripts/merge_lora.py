"""Merge a LoRA adapter into its base with `llamafactory-cli export`; keeps its YAML."""

import argparse
from pathlib import Path

from arguments import json_argument, run
from zerogap.training.llamafactory import launching, settings


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="model the adapter was trained on")
    parser.add_argument("--adapter", type=Path, required=True)
    parser.add_argument("--training", type=json_argument, required=True)
    parser.add_argument("--settings", type=Path, required=True, help="YAML to be written")
    parser.add_argument("--output", type=Path, required=True, help="model folder to be written")
    args = parser.parse_args(argv)

    sections = settings.export_settings(args.base, args.adapter, args.output, args.training)
    settings.write_settings(args.settings, sections)
    launching.run("export", args.settings)


if __name__ == "__main__":
    run(main)
