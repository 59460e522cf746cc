"""Time as a function of samples per question, questions and prompt length.

python benchmarks/scaling.py [--model llama2]

Seconds of processor time on a CPU. A first run, which is not reported, takes what happens once.
"""

from collections.abc import Sequence
from typing import Any

import common

PLANS = (  # questions, samples, repetitions of the shared prompt
    (10, 50, 1), (20, 50, 1), (40, 50, 1),
    (20, 25, 1), (20, 100, 1), (20, 200, 1),
    (20, 50, 2), (20, 50, 4),
)  # fmt: skip


def main() -> None:
    """Measure all plans and publish the table."""
    args = common.parser(__doc__, tokens=64).parse_args()
    results = common.in_child(
        __file__, model=args.model, dtype=args.dtype, device=common.default_device(),
        tokens=args.tokens,
    )  # fmt: skip
    common.publish(
        f"Scaling of {args.model}, {args.dtype}: responses of {args.tokens} tokens, batch size 500",
        ["questions", "samples", "shared prompt tokens", "seconds", "tokens/s"],
        [
            [
                str(result["questions"]),
                str(result["samples"]),
                str(result["prefix"]),
                f"{result['seconds']:.2f}",
                f"{result['speed']:,.0f}",
            ]
            for result in results
        ],
        args.output,
    )


def measure(
    model: str, dtype: str, device: str, tokens: int, plans: Sequence[tuple[int, int, int]] = PLANS
) -> list[dict[str, Any]]:
    """Seconds of every plan (questions, samples, repetitions of the shared prompt)."""
    from zerogap.engine import loading
    from zerogap.engine.decoder import Prompt, SamplingParams
    from zerogap.engine.sampler import sample, shared_prefix_length

    clock = common.clock(device)
    decoder = loading.decoder(common.model(model, dtype, device))
    tokenizer = common.EndlessTokenizer()
    prompts = common.prompts(model, max(questions for questions, _, _ in plans))
    prefix = shared_prefix_length(prompts)
    results = []
    for questions, samples, repetitions in [plans[0], *plans]:
        longer_prompts = [
            Prompt(
                prompt.question_id,
                prompt.token_ids[:prefix] * repetitions + prompt.token_ids[prefix:],
            )
            for prompt in prompts[:questions]
        ]
        sampling = SamplingParams(
            temperature=0.7, max_new_tokens=tokens, num_samples=samples, batch_size=500
        )
        start = clock()
        responses = sample(decoder, longer_prompts, tokenizer, sampling)
        num_tokens = sum(len(one.token_ids) for _, drawn in responses for one in drawn)
        common.synchronize(device)
        seconds = clock() - start
        results.append(
            {
                "questions": questions, "samples": samples, "prefix": prefix * repetitions,
                "seconds": seconds, "speed": num_tokens / seconds,
            }
        )  # fmt: skip
    return results[1:]


if __name__ == "__main__":
    common.run(main, measure)
