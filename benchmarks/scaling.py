"""Time against samples a question, questions and prompt length: what should be linear is.

python benchmarks/scaling.py [--model llama2]
"""

import json
import time

import common


def main() -> None:
    args = common.parser(__doc__, tokens=64).parse_args()
    found = common.in_child(
        __file__, model=args.model, dtype=args.dtype, device=common.default_device(),
        tokens=args.tokens,
    )  # fmt: skip
    common.publish(
        f"Scaling of {args.model}, {args.dtype}: {args.tokens} forced tokens, 500 samples together",
        ["questions", "samples", "shared prompt tokens", "seconds", "tokens/s"],
        [
            [
                one["questions"],
                one["samples"],
                one["prefix"],
                f"{one['seconds']:.1f}",
                f"{one['speed']:,.0f}",
            ]
            for one in found
        ],  # fmt: skip
        args.output,
    )


def child(arguments: dict) -> None:
    from zerogap.decoding import models
    from zerogap.decoding.sampler import Prompt, Sampling, sample, shared_prefix

    decoder = models.decoder(
        common.model(arguments["model"], arguments["dtype"], arguments["device"])
    )
    words = common.Endless(common.tokenizer())
    made = common.prompts(arguments["model"], 40)
    prefix = shared_prefix(made)
    rows = []
    for questions, samples, repeats in (
        (10, 50, 1), (20, 50, 1), (40, 50, 1),
        (20, 25, 1), (20, 100, 1), (20, 200, 1),
        (20, 50, 2), (20, 50, 4),
    ):  # fmt: skip
        prompts = [
            Prompt(one.question_id, one.token_ids[:prefix] * repeats + one.token_ids[prefix:])
            for one in made[:questions]
        ]
        sampling = Sampling(
            temperature=0.7, max_new_tokens=arguments["tokens"], stop=[], samples=samples,
            batch_rows=500,
        )  # fmt: skip
        start = time.perf_counter()
        drawn = sample(decoder, prompts, words, sampling)
        tokens = sum(len(one.token_ids) for _, responses in drawn for one in responses)
        common.synchronize(arguments["device"])
        seconds = time.perf_counter() - start
        rows.append(
            {
                "questions": str(questions), "samples": str(samples),
                "prefix": str(prefix * repeats), "seconds": seconds, "speed": tokens / seconds,
            }
        )  # fmt: skip
    print(json.dumps(rows))


if __name__ == "__main__":
    common.run(main, child)
