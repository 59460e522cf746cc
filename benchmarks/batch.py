"""Rows a second against the rows of a step: from where on does a larger batch bring nothing?

python benchmarks/batch.py --model llama-160m        # one thread: OMP_NUM_THREADS=1

A step's time is that of the processor on a CPU, which what else runs there disturbs least, and the
clock's on a GPU; the best of the steps counts. Fifty rows a question, 32 own tokens at the most.
"""

import json

import common

ROWS = (25, 50, 100, 200, 500, 1000, 2000)


def main() -> None:
    parser = common.parser(__doc__, model="llama-160m", steps=12)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    args = parser.parse_args()
    found = common.in_child(
        __file__, model=args.model, dtype=args.dtype, device=common.default_device(),
        steps=args.steps, rows=args.rows,
    )  # fmt: skip
    common.publish(
        f"Rows of a step: {args.model}, {args.dtype}",
        ["rows", "ms a step", "rows/s", "peak GiB"],
        [
            [
                f"{one['rows']:,}",
                f"{one['seconds'] * 1e3:,.1f}",
                f"{one['rows'] / one['seconds']:,.0f}",
                f"{one['peak'] / 2**30:.1f}",
            ]
            for one in found
        ],
        args.output,
    )


def child(arguments: dict) -> None:
    print(json.dumps(measured(**arguments)))


def measured(model: str, dtype: str, device: str, steps: int, rows: list[int]) -> list[dict]:
    """The best step of every number of rows, drawing included, in seconds."""
    import numpy as np
    import torch

    from zerogap.engine import loading
    from zerogap.engine.drawing import draw
    from zerogap.engine.sampler import shared_prefix_length

    clock = common.clock(device)
    prompts = common.prompts(model, -(-max(rows) // 50))
    prefix = shared_prefix_length(prompts) if len(prompts) > 1 else len(prompts[0].token_ids) - 60
    decoder = loading.decoder(common.model(model, dtype, device))
    found = []
    with torch.inference_mode():
        for count in rows:
            decoder.prefill_prefix(prompts[0].token_ids[:prefix])
            asked = [prompt.token_ids[prefix:] for prompt in prompts[: -(-count // 50)]]
            for first in range(0, len(asked), 32):
                decoder.prefill_prompts(asked[first : first + 32])
            decoder.reorder(np.arange(count) // 50)
            uniform = torch.rand(count, dtype=torch.float64, device=device)
            tokens = torch.full((count,), 300, device=device)
            spent = []
            for _ in range(steps):
                common.synchronize(device)
                start = clock()
                tokens = draw(decoder.step(tokens), uniform, 0.7)
                common.synchronize(device)
                spent.append(clock() - start)
            found.append({"rows": count, "seconds": min(spent), "peak": common.peak_bytes(device)})
    return found


if __name__ == "__main__":
    common.run(main, child)
