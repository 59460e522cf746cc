"""One of the paper's tables, or one beyond them, from `metrics` tables."""

import argparse
from dataclasses import replace
from pathlib import Path

from arguments import json_argument, run
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.published import as_metrics
from zerogap.published import protocol_differences as departures
from zerogap.reporting import render, tables

OF_ONE_SETTING = {
    "reversal": tables.reversal,
    "decomposition": tables.decomposition,
    "ablation": tables.ablation,
}
OF_ALL_SETTINGS = {
    "main": tables.main,
    "intervals": tables.intervals,
    "subsets": tables.subsets,
    "noise_floor": tables.noise_floor,
}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", required=True, choices=[*OF_ONE_SETTING, *OF_ALL_SETTINGS])
    parser.add_argument("--metrics", type=Path, nargs="+", required=True)
    parser.add_argument("--setting", nargs=2, metavar=("MODEL", "BENCHMARK"))
    parser.add_argument(
        "--beside-paper",
        type=json_argument,
        metavar="PROTOCOL",
        help="the paper's readings and ours; JSON, what this run was made by (see departures)",
    )
    parser.add_argument("--labels", type=json_argument, default={})
    parser.add_argument("--scale", default="", help="a sentence on the size of the run")
    parser.add_argument("--facts", type=json_argument, default={})
    parser.add_argument("--output", required=True, help="prefix: .csv .md .tex .html .json")
    args = parser.parse_args(argv)
    if args.table in OF_ONE_SETTING and not args.setting:
        parser.error(f"--table {args.table} needs --setting MODEL BENCHMARK")

    labels = tables.Labels.from_mapping(args.labels)

    def build(readings: tables.MetricTable) -> render.Table:
        if args.table in OF_ONE_SETTING:
            return OF_ONE_SETTING[args.table](readings, labels, tuple(args.setting))
        return OF_ALL_SETTINGS[args.table](readings, labels)

    table = build(tables.MetricTable(parquet.read(path, "metrics") for path in args.metrics))
    if args.beside_paper is not None:
        # The paper shows one setting; another one has nothing beside it.
        paper = tables.MetricTable([as_metrics()])
        known = not args.setting or paper.strategies(*args.setting)
        theirs = build(paper) if known else replace(table, rows=())
        table = tables.beside_paper(table, theirs, departures(args.beside_paper))
    if args.scale:
        table = replace(table, notes=(*table.notes, args.scale))
    render.save(table, args.output, provenance(**args.facts))


if __name__ == "__main__":
    run(main)
