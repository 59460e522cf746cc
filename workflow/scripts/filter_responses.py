"""A strategy that filters: keep the responses of another strategy that it lets pass."""

import argparse
from pathlib import Path

from arguments import json_argument, run
from zerogap.analysis.solve_counts import solve_counts
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.strategies import base
from zerogap.strategies.filtering import passing


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--greedy", type=Path, required=True)
    parser.add_argument("--source", type=Path, required=True, help="the samples to filter")
    parser.add_argument("--strategy", type=json_argument, required=True)
    parser.add_argument("--facts", type=json_argument, default={})
    parser.add_argument("--samples", type=Path, required=True)
    parser.add_argument("--solve", type=Path, required=True)
    args = parser.parse_args(argv)

    questions = parquet.read(args.questions, "questions")
    greedy = parquet.read(args.greedy, "greedy")
    trajectories = zip(greedy.token_ids, greedy.finish_reason, strict=True)
    samples = parquet.read(args.source, "samples")
    keep = base.build(args.strategy).prepare(base.Context([], [])).keep
    kept = passing(samples, dict(zip(greedy.question_id, trajectories, strict=True)), keep)

    facts = provenance(
        **args.facts, strategy_parameters=args.strategy, source=parquet.provenance(args.source)
    )
    parquet.write(args.samples, kept, "samples", facts)
    solve = solve_counts(kept, questions)
    parquet.write(args.solve, solve, "solve", facts)
    empty = int((solve.n_samples == 0).sum())
    print(f"{len(kept)} of {len(samples)} responses pass; {empty} questions have none left")


if __name__ == "__main__":
    run(main)
