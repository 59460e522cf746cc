"""What the run took: tokens and wall seconds of every training, greedy pass and cell of samples."""

import argparse
from dataclasses import replace

import pandas as pd

from arguments import json_argument, run
from zerogap.analysis import cost
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.reporting import render, tables


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--jobs",
        type=json_argument,
        required=True,
        help="JSON, a list of [model, benchmark, job, what it made, its benchmark]; a benchmark with "
        "{shard} in its name has a file a shard",
    )
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--labels", type=json_argument, default={})
    parser.add_argument("--scale", default="", help="a sentence on the size of the run")
    parser.add_argument("--facts", type=json_argument, default={})
    parser.add_argument("--output", required=True, help="prefix: .csv .md .tex .html .json")
    args = parser.parse_args(argv)

    rows = []
    for model, benchmark, job, made, benchmark in args.jobs:
        responses, tokens = None, None
        if job not in ("adapter", "neurons", "ranks"):
            table = parquet.read(made, "greedy" if job == "greedy" else "samples")
            responses, tokens = len(table), cost.tokens(table)
        files = {benchmark.format(shard=number) for number in range(args.shards)}
        rows.append((model, benchmark, job, responses, tokens, cost.seconds(files)))
    frame = pd.DataFrame(rows, columns=cost.COLUMNS)
    table = tables.cost(frame, tables.Labels.from_mapping(args.labels))
    if args.scale:
        table = replace(table, notes=(*table.notes, args.scale))
    render.save(table, args.output, provenance(**args.facts))


if __name__ == "__main__":
    run(main)
