"""Rank of the clean model's next token under the contaminated model (Figure 1 b, d)."""

import argparse
import json
from pathlib import Path

import pandas as pd

from arguments import json_argument, run
from zerogap import gpus
from zerogap.engine import loading
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.sampling import responses
from zerogap.sampling.ranks import token_ranks


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="the contaminated model")
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--exemplars", type=Path, required=True)
    parser.add_argument("--clean-greedy", type=Path, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--decoding", type=json_argument, required=True)
    parser.add_argument("--facts", type=json_argument, default={})
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args(argv)

    gpus.claim()
    model, tokenizer = loading.load(args.model, args.decoding["dtype"])
    questions = parquet.read(args.questions, "questions")
    clean = parquet.read(args.clean_greedy, "greedy").set_index("question_id").token_ids
    prompts = responses.few_shot_prompts(
        questions,
        json.loads(args.exemplars.read_text()),
        tokenizer,
        loading.context_length(model),
        args.steps,
    )
    rows = []
    for prompt, leaked in zip(prompts, questions.leaked, strict=True):
        tokens = list(map(int, clean[prompt.question_id]))[: args.steps]
        found = token_ranks(model, prompt.token_ids, tokens)
        rows += [
            (prompt.question_id, leaked, step, token, rank)
            for step, (token, rank) in enumerate(zip(tokens, found, strict=True), start=1)
        ]
    table = pd.DataFrame(rows, columns=parquet.CONTRACTS["ranks"].names)
    parquet.write(args.output, table, "ranks", provenance(**args.facts, steps=args.steps))
    apart = table[table["rank"] > 1]
    print(f"{len(apart)} of {len(table)} steps disagree")


if __name__ == "__main__":
    run(main)
