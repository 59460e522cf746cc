"""Products with weights in bfloat16 on a CPU: our kernel with packed weights against PyTorch.

python benchmarks/products.py

The linear layers of SmolLM2-135M, as the engine joins them. Weights come from memory, as in a step:
enough copies of a layer are multiplied in turn to exceed the processor's cache. Each number is the
median pass over the copies in a process of its own, by the clock; the two ways alternate.
"""

import statistics
import time

import common

WAYS = ("linear", "kernel")
HIDDEN, FEED_FORWARD, HEADS, VOCABULARY = 576, 1536, 15 * 64, 49152
GATE_AND_UP = "gate and up, with silu"
# Label → columns and size of the weights.
LAYERS = {
    "queries, keys and values": (HEADS, HIDDEN),
    "output of attention": (HIDDEN, HIDDEN),
    GATE_AND_UP: (2 * FEED_FORWARD, HIDDEN),
    "down": (HIDDEN, FEED_FORWARD),
    "head": (VOCABULARY, HIDDEN),
}
ROWS = (450, 120, 16)
BYTES = 100 * 2**20  # of weights that are multiplied in turn


def main() -> None:
    """Measure both ways alternately and publish the table."""
    parser = common.output_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--passes", type=int, default=20)
    args = parser.parse_args()
    rows = []
    for label, (columns, size) in LAYERS.items():
        for num_rows in ROWS:
            rates: dict[str, list[float]] = {way: [] for way in WAYS}
            for _ in range(args.repeats):
                for way in WAYS:
                    work = {"way": way, "label": label, "num_rows": num_rows}
                    seconds = common.in_child(__file__, **work, passes=args.passes)
                    rates[way].append(2 * num_rows * columns * size / seconds / 1e9)
            ratios = [fast / slow for slow, fast in zip(*rates.values(), strict=True)]
            ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            medians = (f"{statistics.median(rates[way]):.0f}" for way in WAYS)
            rows.append([label, num_rows, *medians, ratio])
    common.publish(
        "Products with the weights of SmolLM2-135M, bfloat16",
        ["layer", "rows", "PyTorch, GFLOP/s", "kernel, GFLOP/s", "speed-up (range)"],
        rows,
        args.output,
    )


def measure(way: str, label: str, num_rows: int, passes: int) -> float:
    """Seconds of a product, silu included."""
    import torch

    from zerogap.engine import cpu_kernels

    columns, size = LAYERS[label]
    is_gated = label == GATE_AND_UP
    torch.manual_seed(0)
    weights = [
        (torch.randn(columns, size) / size**0.5).bfloat16()
        for _ in range(max(1, BYTES // (2 * columns * size)))
    ]
    values = torch.randn(num_rows, size).bfloat16()
    if way == "kernel":
        pack = cpu_kernels.packed_gates if is_gated else cpu_kernels.packed
        weights = [pack(weight) for weight in weights]

    def multiply(weight: torch.Tensor) -> torch.Tensor:
        if way == "kernel":
            product = cpu_kernels.gated_product if is_gated else cpu_kernels.product
            return product(values, weight, columns // 2 if is_gated else columns)
        out = torch.nn.functional.linear(values, weight)
        return cpu_kernels.gated_silu(out) if is_gated else out

    seconds = []
    with torch.inference_mode():
        multiply(weights[0])  # compiles
        for _ in range(passes):
            start = time.perf_counter()
            for weight in weights:
                multiply(weight)
            seconds.append((time.perf_counter() - start) / len(weights))
    return statistics.median(seconds)


if __name__ == "__main__":
    common.run(main, measure)
