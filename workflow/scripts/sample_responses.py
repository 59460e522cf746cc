"""Draw m responses to every question from one model under one strategy."""

import argparse
import json
from pathlib import Path

from arguments import json_argument, run
from zerogap import gpus
from zerogap.analysis.solve_counts import solve_counts
from zerogap.data.extraction import extraction_rule
from zerogap.engine import loading
from zerogap.engine.decoder import SamplingParams
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.io.resume import folder_state
from zerogap.sampling import responses
from zerogap.sampling.cell import sample_questions
from zerogap.sampling.checkpoint import Parts
from zerogap.strategies import base


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
    parser.add_argument("--extraction", default="numeric", help="see zerogap.data.extraction")
    parser.add_argument("--facts", type=json_argument, default={})
    parser.add_argument(
        "--shard", type=int, nargs=2, default=(0, 1), help="k n: every n-th question from the k-th"
    )
    parser.add_argument("--samples", type=Path, required=True)
    parser.add_argument("--solve", type=Path, required=True)
    args = parser.parse_args(argv)

    gpus.claim()
    decoding = args.decoding
    model, tokenizer = loading.load(args.model, decoding["dtype"])
    questions = parquet.read(args.questions, "questions")
    trajectories = parquet.read(args.greedy, "greedy").set_index("question_id")
    trajectories = trajectories.loc[questions.question_id]
    prompts = responses.few_shot_prompts(
        questions,
        json.loads(args.exemplars.read_text()),
        tokenizer,
        loading.context_length(model),
        decoding["max_new_tokens"],
    )
    intervention = base.build(args.strategy).prepare(
        base.Context(
            trajectories=[list(map(int, tokens)) for tokens in trajectories.token_ids],
            entropies=[list(map(float, steps)) for steps in trajectories.entropy],
            tokenizer=tokenizer,
            donor=args.donor,
            neurons=args.neurons,
        )
    )
    decoder = loading.decoder(model)
    if intervention.wrap is not None:
        decoder = intervention.wrap(decoder)
    sampling = SamplingParams(
        num_samples=decoding["samples"],
        temperature=decoding["temperature"],
        top_p=decoding["top_p"],
        max_new_tokens=decoding["max_new_tokens"],
        stop=decoding["stop"],
        batch_size=decoding["batch_rows"],
        batch_invariant=decoding["exact"],
        seed=args.seed,
        stream=args.stream,
    )
    facts = provenance(
        **args.facts,
        strategy_parameters=args.strategy,
        decoding=decoding,
        seed=args.seed,
        stream=args.stream,
        extraction=args.extraction,
        device=str(model.device),
    )
    origin = {
        "facts": [args.facts, args.strategy, args.seed, args.stream, str(model.device)],
        "extraction": args.extraction,
        "decoding": {key: value for key, value in decoding.items() if key != "batch_rows"},
        "versions": [facts["packages"][name] for name in ("torch", "transformers")],
        "prompts": [(prompt.question_id, prompt.token_ids) for prompt in prompts],
        "greedy": trajectories[["token_ids", "entropy"]].to_json(),
        "folders": [folder_state(folder) for folder in (args.model, args.donor) if folder],
        "neurons": args.neurons and parquet.read(args.neurons, "neurons").to_json(),
    }
    first, every = args.shard
    chosen = range(first, len(questions), every)
    with Parts(args.samples, origin) as parts:
        samples = sample_questions(
            decoder,
            prompts,
            list(questions.gold),
            tokenizer,
            sampling,
            extraction_rule(args.extraction),
            intervention.edit,
            parts=parts,
            chosen=chosen,
        )
        parquet.write(args.samples, samples, "samples", facts)
        parts.discard()
    counts = solve_counts(samples, questions.iloc[chosen])
    parquet.write(args.solve, counts, "solve", facts)
    print(f"{len(samples)} responses, {samples.correct.mean():.3f} correct")


if __name__ == "__main__":
    run(main)
