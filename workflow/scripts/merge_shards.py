"""A cell whose questions were sampled in shards, in the order of the questions."""

import argparse
from pathlib import Path

import pandas as pd

from arguments import run
from zerogap.io import parquet


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=Path, nargs="+", required=True)
    parser.add_argument("--solve", type=Path, nargs="+", required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--merged-samples", type=Path, required=True)
    parser.add_argument("--merged-solve", type=Path, required=True)
    args = parser.parse_args(argv)

    order = parquet.read(args.questions, "questions").question_id
    for contract, shards, merged in (
        ("samples", args.samples, args.merged_samples),
        ("solve", args.solve, args.merged_solve),
    ):
        facts = [parquet.provenance(shard) for shard in shards]
        same = all(one == facts[0] for one in facts)
        table = pd.concat(parquet.read(shard, contract) for shard in shards)
        origin = facts[0] if same else facts[0] | {"shards": facts}  # as after an update
        parquet.write(merged, _ordered(table, order), contract, origin)


def _ordered(table: pd.DataFrame, order: pd.Series) -> pd.DataFrame:
    """Its rows by question, each question's own in their present order."""
    place = table.question_id.map(dict(zip(order, range(len(order)), strict=True)))
    return table.iloc[place.argsort(kind="stable")]


if __name__ == "__main__":
    run(main)
