"""A model's greedy trajectory for every question, with the entropy of each step."""

import argparse
import json
from pathlib import Path

import pandas as pd

from arguments import json_argument, run
from zerogap import gpus
from zerogap.data.extraction import extraction_rule
from zerogap.engine import loading
from zerogap.engine.decoder import SamplingParams
from zerogap.engine.sampler import greedy
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.sampling import responses


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--exemplars", type=Path, required=True)
    parser.add_argument("--decoding", type=json_argument, required=True)
    parser.add_argument("--extraction", default="numeric", help="see zerogap.data.extraction")
    parser.add_argument("--facts", type=json_argument, default={})
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args(argv)

    gpus.claim()
    decoding = args.decoding
    model, tokenizer = loading.load(args.model, decoding["dtype"])
    questions = parquet.read(args.questions, "questions")
    prompts = responses.few_shot_prompts(
        questions,
        json.loads(args.exemplars.read_text()),
        tokenizer,
        loading.context_length(model),
        decoding["max_new_tokens"],
    )
    sampling = SamplingParams(
        temperature=0,
        max_new_tokens=decoding["max_new_tokens"],
        stop=decoding["stop"],
        batch_size=decoding["batch_rows"],
        batch_invariant=decoding["exact"],
    )
    trajectories = greedy(loading.decoder(model), prompts, tokenizer, sampling)
    judge = extraction_rule(args.extraction)
    said = responses.texts(trajectories, tokenizer, decoding["stop"])
    rows = [
        (
            question.question_id,
            trajectory.token_ids,
            text,
            *judge.grade(text, question.gold),
            trajectory.entropy,
            trajectory.finish_reason,
        )
        for question, trajectory, text in zip(
            questions.itertuples(), trajectories, said, strict=True
        )
    ]
    table = pd.DataFrame(rows, columns=parquet.CONTRACTS["greedy"].names)
    facts = provenance(
        **args.facts, decoding=decoding, extraction=args.extraction, device=str(model.device)
    )
    parquet.write(args.output, table, "greedy", facts)
    print(f"{len(table)} questions, {table.correct.mean():.3f} solved by the greedy response")


if __name__ == "__main__":
    run(main)
