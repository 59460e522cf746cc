"""What each compiled kernel gains end to end: the same samples with it and without it.

python benchmarks/kernels.py                                          # the Llama toy model
python benchmarks/kernels.py --model smollm2-135m --dtype bfloat16    # a shape with random weights

Every run draws the same number of responses in a process of its own, in which one of the switches
of :mod:`zerogap.engine.kernels` is off, or all, or none; the contenders alternate. On a CPU seconds
are processor time, which other processes disturb least.
"""

import dataclasses
import os
from typing import Any

import common

SWITCHES = ("", "attend", "parts", "products", "layers", "draw", "graphs", "all")


def main() -> None:
    """Measure all ways alternately and publish the table."""
    args = common.parser(__doc__, questions=20, samples=50, tokens=64, repeats=3).parse_args()
    runs: dict[str, list[float]] = {off: [] for off in SWITCHES}
    for _ in range(args.repeats):
        for off, seconds in runs.items():
            seconds.append(
                common.in_child(
                    __file__, model=args.model, dtype=args.dtype, questions=args.questions,
                    samples=args.samples, tokens=args.tokens, off=off,
                )
            )  # fmt: skip
    common.publish(
        f"Kernels: {args.model}, {args.dtype}, {args.questions} questions × {args.samples} samples "
        f"of {args.tokens} tokens, rounds: {args.repeats}",
        ["without", "seconds (best)", "gain of the kernel (range)"],
        [
            [off or "–", f"{min(seconds):.2f}", common.ratios(seconds, runs[""])]
            for off, seconds in runs.items()
        ],
        args.output,
    )


def measure(model: str, dtype: str, questions: int, samples: int, tokens: int, off: str) -> float:
    """Seconds of one run, after a short one that compiles what is not cached yet."""
    os.environ["ZEROGAP_WITHOUT_KERNELS"] = off
    from zerogap.engine import loading
    from zerogap.engine.decoder import SamplingParams
    from zerogap.engine.sampler import sample

    device = common.default_device()
    clock, prompts = common.clock(device), common.prompts(model, questions)
    decoder = loading.decoder(common.model(model, dtype, device))
    sampling = SamplingParams(num_samples=samples, temperature=0.7, max_new_tokens=tokens)
    tokenizer: Any = common.EndlessTokenizer()
    warm_up = sampling if device == "cuda" else dataclasses.replace(sampling, max_new_tokens=2)
    list(sample(decoder, prompts, tokenizer, warm_up))
    start = clock()
    list(sample(decoder, prompts, tokenizer, sampling))
    common.synchronize(device)
    return clock() - start


if __name__ == "__main__":
    common.run(main, measure)
