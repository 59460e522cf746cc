"""Draw m responses to every question from one model under one strategy."""

import argparse
import json
import sys
import time
from pathlib import Path

import pandas as pd

from arguments import json_argument, run
from zerogap import store
from zerogap.decoding import models, responses, strategy
from zerogap.decoding.cache import CachedModel
from zerogap.decoding.sampler import Sampling, sample
from zerogap.provenance import provenance


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--exemplars", type=Path, required=True)
    parser.add_argument("--greedy", type=Path, required=True)
    parser.add_argument("--donor", type=Path)
    parser.add_argument("--neurons", type=Path)
    parser.add_argument("--strategy", type=json_argument, required=True)
    parser.add_argument("--decoding", type=json_argument, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--stream", required=True)
    parser.add_argument("--facts", type=json_argument, default={})
    parser.add_argument("--samples", type=Path, required=True)
    parser.add_argument("--solve", type=Path, required=True)
    args = parser.parse_args(argv)

    decoding = args.decoding
    model, tokenizer = models.load(args.model, decoding["dtype"])
    questions = store.read(args.questions, "questions")
    trajectories = store.read(args.greedy, "greedy").set_index("question_id")
    trajectories = trajectories.loc[questions.question_id]
    prompts = responses.few_shot_prompts(
        questions,
        json.loads(args.exemplars.read_text()),
        tokenizer,
        models.context_length(model),
        decoding["max_new_tokens"],
    )
    plan = strategy.build(
        args.strategy,
        strategy.Context(
            trajectories=[list(map(int, tokens)) for tokens in trajectories.token_ids],
            entropies=[list(map(float, steps)) for steps in trajectories.entropy],
            tokenizer=tokenizer,
            donor=args.donor,
            neurons=args.neurons,
        ),
    )
    decoder = CachedModel(model)
    if plan.wrap is not None:
        decoder = plan.wrap(decoder)
    sampling = Sampling(
        temperature=decoding["temperature"],
        top_p=decoding["top_p"],
        max_new_tokens=decoding["max_new_tokens"],
        stop=decoding["stop"],
        samples=decoding["samples"],
        seed=args.seed,
        stream=args.stream,
        batch_rows=decoding["batch_rows"],
    )
    rows: dict[int, list[tuple]] = {}
    progress = Progress(len(questions))
    for index, drawn in sample(decoder, prompts, tokenizer, sampling, plan.edit):
        question = questions.iloc[index]
        rows[index] = responses.sample_rows(
            question.question_id, question.gold, drawn, tokenizer, decoding["stop"]
        )
        progress.advance(sum(len(response.token_ids) for response in drawn))

    table = pd.DataFrame(
        [row for index in sorted(rows) for row in rows[index]],
        columns=store.CONTRACTS["samples"].names,
    )
    facts = provenance(
        **args.facts,
        strategy_parameters=args.strategy,
        decoding=decoding,
        seed=args.seed,
        stream=args.stream,
        device=str(model.device),
    )
    store.write(args.samples, table, "samples", facts)
    store.write(args.solve, responses.solve_counts(table, questions), "solve", facts)
    print(f"{len(table)} responses, {table.correct.mean():.3f} correct; {progress}")


class Progress:
    """A line every few seconds: questions done, speed, time left."""

    def __init__(self, total: int) -> None:
        self._total, self._done, self._tokens = total, 0, 0
        self._start = self._last = time.monotonic()

    def advance(self, tokens: int) -> None:
        self._done += 1
        self._tokens += tokens
        if time.monotonic() - self._last > 5:
            self._last = time.monotonic()
            print(self, file=sys.stderr, flush=True)

    def __str__(self) -> str:
        spent = time.monotonic() - self._start
        left = spent / max(self._done, 1) * (self._total - self._done)
        return (
            f"{self._done}/{self._total} questions, {self._tokens:,} tokens, "
            f"{self._tokens / spent:,.0f} tokens/s, {left:.0f} s left"
        )


if __name__ == "__main__":
    run(main)
