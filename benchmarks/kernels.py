"""What the compiled kernels gain on a CPU or a GPU: steps with them and with plain PyTorch.

python benchmarks/kernels.py                        # the Llama toy model
python benchmarks/kernels.py --model smollm2-135m   # one thread: OMP_NUM_THREADS=1

Each number is the best step of a process of its own, in processor time, or in wall time on a GPU;
the two ways alternate.
The last own tokens of the measured steps are around number 12.
"""

import os
import statistics
from typing import Any

import batch
import common

SWITCHES = ("ZEROGAP_CPU_KERNELS", "ZEROGAP_GPU_KERNELS")
WAYS = {"plain PyTorch": "0", "compiled kernels": "1"}  # → value of the switches


def main() -> None:
    """Measure both ways alternately and publish the table."""
    parser = common.parser(__doc__, dtype="bfloat16", steps=12, repeats=3)
    parser.add_argument("--rows", type=int, nargs="+", default=(50, 200, 500))
    args = parser.parse_args()
    runs: dict[str, list[list[dict[str, Any]]]] = {way: [] for way in WAYS}
    for _ in range(args.repeats):
        for way, setting in WAYS.items():
            runs[way].append(
                common.in_child(
                    __file__, model=args.model, dtype=args.dtype, steps=args.steps,
                    rows=args.rows, kernels=setting,
                )
            )  # fmt: skip
    common.publish(
        f"Compiled kernels: {args.model}, {args.dtype}",
        ["rows", "", *WAYS, "speed-up (range)"],
        [
            [f"{rows:,}", label, *_row(runs, index, part)]
            for index, rows in enumerate(args.rows)
            for part, label in (("seconds", "step, ms"), ("drawing", "of it drawing, ms"))
        ],
        args.output,
    )


def _row(runs: dict[str, list[list[dict[str, Any]]]], index: int, part: str) -> list[str]:
    """Best times in ms, then the median ratio of the runs and its range."""
    plain, compiled = ([run[index][part] for run in runs[way]] for way in WAYS)
    ratios = [slow / fast for slow, fast in zip(plain, compiled, strict=True)]
    speed_up = f"{statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})"
    return [f"{min(plain) * 1e3:,.1f}", f"{min(compiled) * 1e3:,.1f}", speed_up]


def measure(
    model: str, dtype: str, steps: int, rows: list[int], kernels: str
) -> list[dict[str, Any]]:
    """The best step for each number of rows, with the kernels on ("1") or off ("0")."""
    os.environ |= dict.fromkeys(SWITCHES, kernels)
    return batch.measure(model, dtype, common.default_device(), steps, rows)


if __name__ == "__main__":
    common.run(main, measure)
