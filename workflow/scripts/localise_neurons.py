"""Find the shortcut neurons of a contaminated model: comparative and causal scores."""

import argparse
import json
from pathlib import Path

import torch

from arguments import json_argument, run
from zerogap import gpus
from zerogap.data.extraction import extraction_rule
from zerogap.engine import loading
from zerogap.engine.decoder import SamplingParams
from zerogap.engine.sampler import greedy
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.sampling import responses
from zerogap.strategies import shortcut


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contaminated", type=Path, required=True)
    parser.add_argument("--clean", type=Path, required=True)
    parser.add_argument("--donor", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--exemplars", type=Path, required=True)
    parser.add_argument("--greedy", type=Path, required=True)
    parser.add_argument("--decoding", type=json_argument, required=True)
    parser.add_argument("--localisation", type=json_argument, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--extraction", default="numeric", help="see zerogap.data.extraction")
    parser.add_argument("--facts", type=json_argument, default={})
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args(argv)

    gpus.claim()
    decoding, plan = args.decoding, args.localisation
    contaminated, tokenizer = loading.load(args.contaminated, decoding["dtype"])
    clean, _ = loading.load(args.clean, decoding["dtype"])
    donor, _ = loading.load(args.donor, decoding["dtype"])
    questions = parquet.read(args.questions, "questions")
    trajectories = parquet.read(args.greedy, "greedy").set_index("question_id").token_ids
    leaked = questions[questions.leaked].reset_index(drop=True)
    prompts = responses.few_shot_prompts(
        leaked,
        json.loads(args.exemplars.read_text()),
        tokenizer,
        loading.context_length(contaminated),
        decoding["max_new_tokens"],
    )

    texts = [
        (prompt.token_ids + list(map(int, trajectories[prompt.question_id])), len(prompt.token_ids))
        for prompt in prompts
    ]
    comparative = shortcut.comparative_scores(contaminated, clean, texts)

    some = leaked.sample(n=min(plan["questions"], len(leaked)), random_state=args.seed)
    asked = [prompts[index] for index in some.index]
    decoders = {"contaminated": loading.decoder(contaminated), "clean": loading.decoder(clean)}
    lender = loading.decoder(donor, with_logits=False)
    judge = extraction_rule(args.extraction)
    sampling = SamplingParams(
        temperature=0,
        max_new_tokens=decoding["max_new_tokens"],
        stop=decoding["stop"],
        batch_size=decoding["batch_rows"],
        batch_invariant=decoding["exact"],
    )

    def solved(which: str, neurons: dict[int, torch.Tensor] | None) -> float:
        decoder = decoders[which]
        patched = None if neurons is None else shortcut.PatchedModel(decoder, lender, neurons)
        found = greedy(patched or decoder, asked, tokenizer, sampling)
        if patched:
            patched.release()
        said = responses.texts(found, tokenizer, decoding["stop"])
        hits = [judge.grade(text, gold)[2] for text, gold in zip(said, some.gold, strict=True)]
        return sum(hits) / len(hits)

    parts = shortcut.groups([len(layer) for layer in comparative], plan["group_size"])
    causal = shortcut.causal_scores(solved, parts)
    table = shortcut.select(comparative, parts, causal, plan["share"])
    facts = provenance(**args.facts, localisation=plan, decoding=decoding, seed=args.seed)
    parquet.write(args.output, table, "neurons", facts)
    print(f"{len(parts)} groups scored, {int(table.selected.sum())} neurons selected")


if __name__ == "__main__":
    run(main)
