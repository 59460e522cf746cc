"""Attention to shared keys in bfloat16 on a CPU: our kernel against PyTorch's flash attention.

python benchmarks/attention.py

One layer of SmolLM2-135M's shape: 9 query heads, 3 key-value heads of size 64, 500 rows. Each
number is the best call of a process of its own, in processor time; the two ways alternate.
"""

import statistics
from typing import Any

import common

WAYS = ("flash", "kernel")
HEADS, GROUP, SIZE, ROWS = 3, 3, 64, 500
# Label → entries, rows per entry and keys per entry.
SHAPES = {
    "prefix of 200 tokens (two shots)": (1, ROWS, 200),
    "prefix of 800 tokens (eight shots)": (1, ROWS, 800),
    "10 questions of up to 100 tokens": (10, ROWS // 10, 100),
}


def main() -> None:
    """Measure both ways alternately and publish the table."""
    parser = common.output_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--calls", type=int, default=30)
    args = parser.parse_args()
    rows = []
    for label, shape in SHAPES.items():
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(args.repeats):
            for way in WAYS:
                result = common.in_child(__file__, way=way, shape=shape, calls=args.calls)
                seconds[way].append(result)
        ratios = [slow / fast for slow, fast in zip(*seconds.values(), strict=True)]
        ratio = f"{statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})"
        rows.append([label, *(f"{min(seconds[way]) * 1e3:.2f}" for way in WAYS), ratio])
    common.publish(
        f"Attention to shared keys, bfloat16: {ROWS} rows of one layer of SmolLM2-135M",
        ["", "flash, ms", "kernel, ms", "speed-up (range)"],
        rows,
        args.output,
    )


def measure(way: str, shape: tuple[int, int, int], calls: int) -> float:
    """Seconds of the best call."""
    import torch

    from zerogap.engine import cpu_kernels, part_attention

    cpu_kernels.has_products = lambda: way == "kernel"  # type: ignore[assignment]
    batch, rows, keys = shape
    torch.manual_seed(0)
    query = torch.randn(batch * rows, HEADS, GROUP, SIZE).bfloat16()
    row_of_cell = torch.arange(len(query)).view(batch, rows)
    key, value = (torch.randn(batch, HEADS, keys, SIZE).bfloat16() for _ in range(2))
    num_keys = torch.linspace(keys / 2, keys, batch).long() if batch > 1 else None

    def call() -> Any:
        return part_attention.part_attention(
            query, key, value, row_of_cell=row_of_cell, num_keys=num_keys
        )

    call()  # compiles
    clock, seconds = common.clock("cpu"), []
    for _ in range(calls):
        start = clock()
        call()
        seconds.append(clock() - start)
    return min(seconds)


if __name__ == "__main__":
    common.run(main, measure)
