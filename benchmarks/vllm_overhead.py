"""What the strategies cost inside vLLM: the same requests with and without them.

python benchmarks/vllm_overhead.py  # the Llama toy model, float32
python benchmarks/vllm_overhead.py --model FOLDER --dtype bfloat16 --gsm8k test.jsonl

One engine answers all of them in turn, several times, every other round in the opposite order. A
round's overhead compares contenders that ran one after the other; the table has the median and the
range of the rounds. All responses have the full length, so that every contender generates as many
tokens. On a CPU, times are processor time of vLLM's processes, which other work disturbs least.
vLLM must be installed (docs/vllm.md).
"""

import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import common
import contenders
import psutil

from zerogap.sampling.engines import required_vllm

CONTENDERS = ("none", "railcap", "lne_blocking")


def main() -> None:
    """Measure, and publish the table."""
    parser = common.parser(__doc__, questions=20, samples=50, tokens=64, rounds=3)
    parser.add_argument("--gsm8k", type=Path, help="GSM8K's test.jsonl; else generated questions")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = common.model_folder(args.model, args.dtype, Path(scratch))
        seconds = common.in_child(
            __file__, python=required_vllm().python, folder=str(folder), dtype=args.dtype,
            prompts=common.write_prompts(Path(scratch), args.model, args.questions, args.gsm8k),
            samples=args.samples, tokens=args.tokens, rounds=args.rounds,
        )  # fmt: skip
    num_tokens = args.questions * args.samples * args.tokens
    size = f"{args.questions} questions × {args.samples} samples × {args.tokens} tokens"
    common.publish(
        f"Strategies inside vLLM: {Path(args.model).name}, {args.dtype}, {size}",
        ["strategy", "tokens/s", "overhead", "range of the rounds"],
        [[name, *row(times, seconds["none"], num_tokens)] for name, times in seconds.items()],
        args.output,
    )


def row(times: list[float], without: list[float], num_tokens: int) -> list[str]:
    """Tokens per second of a contender, and how much longer its rounds took than those without."""
    overheads = [time / other - 1 for time, other in zip(times, without, strict=True)]
    return [
        f"{num_tokens / statistics.median(times):,.0f}",
        f"{statistics.median(overheads):+.1%}",
        f"{min(overheads):+.1%} to {max(overheads):+.1%}",
    ]


def measure(
    folder: str, dtype: str, prompts: str, samples: int, tokens: int, rounds: int
) -> dict[str, list[float]]:
    """Seconds of every round, by strategy."""
    llm = contenders.start_vllm(folder, dtype)
    import torch

    from vllm import SamplingParams

    clock = time.perf_counter if torch.cuda.is_available() else processor_time
    asked = [{"prompt_token_ids": ids} for ids in json.loads(Path(prompts).read_text())]
    fixed: dict[str, Any] = {"max_tokens": tokens, "ignore_eos": True}
    greedy = llm.generate(asked, SamplingParams(temperature=0, **fixed), use_tqdm=False)
    trajectories = [list(request.outputs[0].token_ids) for request in greedy]
    arguments: dict[str, list[Any]] = {
        "none": [None] * len(asked),
        "railcap": [{"railcap": {"trajectory": ids, "n": 4}} for ids in trajectories],
        "lne_blocking": [{"lne_blocking": {"entropy": 0.0}}] * len(asked),
    }
    seconds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for round_number in range(1 + rounds):
        for name in CONTENDERS[:: (-1) ** round_number]:
            params = [
                SamplingParams(temperature=0.7, n=samples, extra_args=extra_args, **fixed)
                for extra_args in arguments[name]
            ]
            start = clock()
            llm.generate(asked, params, use_tqdm=False)
            if round_number:  # the first round warms up
                seconds[name].append(clock() - start)
    llm.llm_engine.engine_core.shutdown()
    return seconds


def processor_time() -> float:
    """Processor seconds of this process and of those that it has started, which all still run."""
    process = psutil.Process()
    times = [part.cpu_times() for part in (process, *process.children(recursive=True))]
    return sum(part.user + part.system for part in times)


if __name__ == "__main__":
    common.run(main, measure)
