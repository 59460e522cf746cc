"""All readings of one model and benchmark, with intervals, from `solve` tables."""

import argparse
from pathlib import Path

from arguments import json_argument, run
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.metrics.evaluate import evaluate


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--benchmark", required=True)
    parser.add_argument("--clean", type=Path, required=True, help="the reference's solve table")
    parser.add_argument(
        "--strategies",
        type=json_argument,
        required=True,
        help="JSON, strategy: its solve table; clean_batch2 is the clean model's second batch",
    )
    parser.add_argument(
        "--metrics",
        type=json_argument,
        default={},
        help="JSON with bins, n_resamples, confidence_level, seed, resample; each may be left out",
    )
    parser.add_argument("--facts", type=json_argument, default={})
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args(argv)

    tables = {name: parquet.read(path, "solve") for name, path in args.strategies.items()}
    table = evaluate(
        args.model, args.benchmark, parquet.read(args.clean, "solve"), tables, **args.metrics
    )
    facts = provenance(
        **args.facts, model=args.model, benchmark=args.benchmark, metrics=args.metrics
    )
    parquet.write(args.output, table, "metrics", facts)


if __name__ == "__main__":
    run(main)
