"""Rows per second as a function of the rows of a step: how large should a batch be?

python benchmarks/batch.py --model smollm2-135m      # one thread: OMP_NUM_THREADS=1

The time of a step is the best of several, in processor time on a CPU. Fifty rows per question, at
most 32 own tokens.
"""

from collections.abc import Sequence
from typing import Any

import common

ROWS = (25, 50, 100, 200, 500, 1000, 2000)
ROWS_PER_QUESTION = 50


def main() -> None:
    """Measure steps of several sizes and publish the table."""
    parser = common.parser(__doc__, model="smollm2-135m", steps=12)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    args = parser.parse_args()
    results = common.in_child(
        __file__, model=args.model, dtype=args.dtype, device=common.default_device(),
        steps=args.steps, rows=args.rows,
    )  # fmt: skip
    common.publish(
        f"Rows of a step: {args.model}, {args.dtype}",
        ["rows", "ms per step", "rows/s", "peak GiB"],
        [
            [
                f"{result['rows']:,}",
                f"{result['seconds'] * 1e3:,.1f}",
                f"{result['rows'] / result['seconds']:,.0f}",
                f"{result['peak'] / 2**30:.1f}",
            ]
            for result in results
        ],
        args.output,
    )


def measure(
    model: str, dtype: str, device: str, steps: int, rows: Sequence[int]
) -> list[dict[str, Any]]:
    """Seconds of the best step for each number of rows, drawing included, and of its drawing."""
    import numpy as np
    import torch

    from zerogap.engine import loading
    from zerogap.engine.drawing import draw
    from zerogap.engine.sampler import MAX_PREFILL_PROMPTS, shared_prefix_length

    clock = common.clock(device)
    prompts = common.prompts(model, max(2, -(-max(rows) // ROWS_PER_QUESTION)))
    prefix = shared_prefix_length(prompts)
    decoder = loading.decoder(common.model(model, dtype, device))
    results = []
    with torch.inference_mode():
        for count in rows:
            decoder.prefill_prefix(prompts[0].token_ids[:prefix])
            num_questions = -(-count // ROWS_PER_QUESTION)
            suffixes = [prompt.token_ids[prefix:] for prompt in prompts[:num_questions]]
            for first in range(0, num_questions, MAX_PREFILL_PROMPTS):
                decoder.prefill_prompts(suffixes[first : first + MAX_PREFILL_PROMPTS])
            decoder.reorder(np.arange(count) // ROWS_PER_QUESTION)
            uniform = torch.rand(count, dtype=torch.float64, device=device)
            tokens = torch.full((count,), 300, device=device)
            times = []
            for _ in range(steps):
                common.synchronize(device)
                start = clock()
                logits = decoder.step(tokens)
                common.synchronize(device)
                stepped = clock()
                tokens = draw(logits, uniform, 0.7)
                common.synchronize(device)
                times.append((clock() - start, clock() - stepped))
            seconds, drawing = min(times)
            results.append(
                {
                    "rows": count, "seconds": seconds, "drawing": drawing,
                    "peak": common.peak_bytes(device),
                }
            )  # fmt: skip
    return results


if __name__ == "__main__":
    common.run(main, measure)
