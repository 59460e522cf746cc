"""Time against samples a question, questions and prompt length: what should be linear is.

python benchmarks/scaling.py [--model llama2]

Seconds of the processor on a CPU. A first run that is not told takes what is slow only once.
"""

import json
from collections.abc import Sequence

import common

PLANS = (  # questions, samples, times the shared prompt is repeated
    (10, 50, 1), (20, 50, 1), (40, 50, 1),
    (20, 25, 1), (20, 100, 1), (20, 200, 1),
    (20, 50, 2), (20, 50, 4),
)  # fmt: skip


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
                f"{one['seconds']:.2f}",
                f"{one['speed']:,.0f}",
            ]
            for one in found
        ],  # fmt: skip
        args.output,
    )


def child(arguments: dict) -> None:
    print(json.dumps(measured(**arguments)))


def measured(
    model: str, dtype: str, device: str, tokens: int, plans: Sequence[tuple[int, int, int]] = PLANS
) -> list[dict]:
    """Seconds of every (questions, samples, times the shared prompt is repeated)."""
    from zerogap.engine import loading
    from zerogap.engine.decoder import Prompt, SamplingParams
    from zerogap.engine.sampler import sample, shared_prefix_length

    clock = common.clock(device)
    decoder = loading.decoder(common.model(model, dtype, device))
    words = common.Endless(common.tokenizer())
    made = common.prompts(model, max(questions for questions, _, _ in plans))
    prefix = shared_prefix_length(made)
    rows = []
    for questions, samples, repeats in [plans[0], *plans]:
        prompts = [
            Prompt(one.question_id, one.token_ids[:prefix] * repeats + one.token_ids[prefix:])
            for one in made[:questions]
        ]
        sampling = SamplingParams(
            temperature=0.7, max_new_tokens=tokens, stop=[], num_samples=samples, batch_size=500,
        )  # fmt: skip
        start = clock()
        drawn = sample(decoder, prompts, words, sampling)
        made_tokens = sum(len(one.token_ids) for _, responses in drawn for one in responses)
        common.synchronize(device)
        seconds = clock() - start
        rows.append(
            {
                "questions": str(questions), "samples": str(samples),
                "prefix": str(prefix * repeats), "seconds": seconds, "speed": made_tokens / seconds,
            }
        )  # fmt: skip
    return rows[1:]


if __name__ == "__main__":
    common.run(main, child)
