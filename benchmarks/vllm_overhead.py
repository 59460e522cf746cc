"""What the strategies cost inside vLLM: the same requests with and without them.

make .venv/vllm/ready
python benchmarks/vllm_overhead.py --model FOLDER --dtype bfloat16 --gsm8k test.jsonl

One engine answers all of them in turn, several times, every other round in the opposite order. A
round's overhead compares contenders that ran one after the other; the table has the median and the
range of the rounds. All responses have the full length, so that every contender generates as many
tokens. On a CPU, times are processor time of vLLM's processes, which other work disturbs least.
Without `--gsm8k` the questions are generated.
"""

import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

import common
import psutil

from zerogap.data.prompts import DEFAULT_TEMPLATE, exemplars
from zerogap.data.toy.word_problems import problems

VLLM_PYTHON = common.ROOT / ".venv/vllm/bin/python"
CONTENDERS = ("none", "railcap", "lne_blocking")


def main() -> None:
    """Measure, and publish the table."""
    parser = common.parser(
        __doc__, model="llama2", shots=8, questions=20, samples=50, tokens=64, rounds=3
    )
    parser.add_argument("--gsm8k", type=Path, help="GSM8K's test.jsonl")
    parser.add_argument("--python", type=Path, default=VLLM_PYTHON, help="with vLLM installed")
    args = parser.parse_args()
    seconds = common.in_child(
        __file__, python=args.python, model=args.model, dtype=args.dtype,
        prefix=DEFAULT_TEMPLATE.few_shot_prefix(exemplars("lm_eval", args.shots)),
        questions=questions(args.questions, args.gsm8k),
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


def questions(count: int, gsm8k: Path | None) -> list[str]:
    """The ends of the prompts: GSM8K's first questions, or generated ones."""
    if gsm8k:
        texts = [json.loads(line)["question"] for line in gsm8k.read_text().splitlines()[:count]]
    else:
        texts = [problem.question for problem in problems(count, 0, "test")]
    return [DEFAULT_TEMPLATE.prompt("", text) for text in texts]


def measure(
    model: str, dtype: str, prefix: str, questions: list[str], samples: int, tokens: int,
    rounds: int,
) -> dict[str, list[float]]:  # fmt: skip
    """Seconds of every round, by strategy."""
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "4")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")  # the result is the last line printed
    import torch

    from vllm import LLM, SamplingParams

    clock = time.perf_counter if torch.cuda.is_available() else processor_time
    llm = LLM(
        str(common.BASES / model),  # a folder elsewhere stays what it is
        dtype=dtype,
        max_model_len=2048,
        enforce_eager=not torch.cuda.is_available(),  # else it compiles for minutes
        async_scheduling=False,  # docs/vllm.md
    )
    prompts = [prefix + question for question in questions]
    fixed: dict[str, Any] = {"max_tokens": tokens, "ignore_eos": True}
    greedy = llm.generate(prompts, SamplingParams(temperature=0, **fixed), use_tqdm=False)
    trajectories = [list(request.outputs[0].token_ids) for request in greedy]
    arguments: dict[str, list[Any]] = {
        "none": [None] * len(prompts),
        "railcap": [{"railcap": {"trajectory": ids, "n": 4}} for ids in trajectories],
        "lne_blocking": [{"lne_blocking": {"entropy": 0.0}}] * len(prompts),
    }
    seconds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for round_number in range(1 + rounds):
        for name in CONTENDERS[:: (-1) ** round_number]:
            params = [
                SamplingParams(temperature=0.7, n=samples, extra_args=extra_args, **fixed)
                for extra_args in arguments[name]
            ]
            start = clock()
            llm.generate(prompts, params, use_tqdm=False)
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
