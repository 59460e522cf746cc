"""How often the named extraction rules judge responses as the run's own rule does."""

import argparse
from dataclasses import replace
from pathlib import Path

from arguments import json_argument, run
from zerogap.analysis.extraction_agreement import agreement
from zerogap.data.extraction import extraction_rule
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.reporting import render, tables


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--samples", type=json_argument, required=True, help="JSON, strategy: its samples' files"
    )
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--extraction", required=True, help="the run's own rule")
    parser.add_argument("--labels", type=json_argument, default={})
    parser.add_argument("--scale", default="", help="a sentence on the size of the run")
    parser.add_argument("--facts", type=json_argument, default={})
    parser.add_argument("--output", required=True, help="prefix: .csv .md .tex .html .json")
    args = parser.parse_args(argv)

    gold = parquet.read(args.questions, "questions").set_index("question_id").gold.to_dict()
    own = extraction_rule(args.extraction)
    shares = {
        name: agreement((parquet.read(path, "samples") for path in paths), gold, own)
        for name, paths in args.samples.items()
    }
    table = tables.agreement(shares, own.name, tables.Labels.from_mapping(args.labels))
    if args.scale:
        table = replace(table, notes=(*table.notes, args.scale))
    render.save(table, args.output, provenance(**args.facts))


if __name__ == "__main__":
    run(main)
