"""The time of a decoding step on a CPU, operator by operator, and the speed of its products.

python benchmarks/step_account.py --model smollm2-135m --dtype bfloat16

A run is timed as it is, then once more with a timer around every operator. Times are exclusive: an
operator's time does not contain that of others that it calls. Products are listed by their shape
with their operations per second, and attention to the prefix, which consists of two, with theirs.
The time of all products at the best of these rates is what a step takes at least.
"""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import common

REST = "the rest of a step"  # embeddings, residual sums, Python
PARTS = {REST: "step", "moving rows": "reorder", "random numbers, book-keeping": "_draw_and_append"}
Describe = Callable[..., tuple[str, float]]  # arguments of a call → operator, its operations


def main() -> None:
    """Measure one run in a child process and publish the table."""
    parser = common.parser(
        __doc__, model="smollm2-135m", dtype="bfloat16", questions=10, samples=50, tokens=64
    )
    args = parser.parse_args()
    result = common.in_child(
        __file__, model=args.model, dtype=args.dtype, questions=args.questions,
        samples=args.samples, tokens=args.tokens,
    )  # fmt: skip
    steps, seconds = result["steps"], result["seconds"]
    rates = {name: work / seconds[name] for name, work in result["operations"].items() if work}
    total = sum(seconds.values())
    rows = [
        [
            name,
            f"{1e3 * spent / steps:.2f}",
            f"{spent / total:.1%}",
            f"{rates[name] / 1e9:,.0f}" if name in rates else "–",
        ]
        for name, spent in sorted(seconds.items(), key=lambda item: -item[1])
    ]
    least = sum(result["operations"].values()) / max(rates.values())
    common.publish(
        f"A step of {args.model}, {args.dtype}: {args.questions} questions × {args.samples} "
        f"samples, {args.tokens} tokens",
        ["operator", "ms per step", "share", "GFLOP/s"],
        [*rows, ["all", f"{1e3 * total / steps:.2f}", "100.0%", ""]],
        args.output,
        [
            f"Without timers a step takes {1e3 * result['untimed'] / steps:.2f} ms; the operators "
            f"add up to {total / result['untimed']:.1%} of it.",
            f"All products at the best rate: {1e3 * least / steps:.2f} ms, {least / total:.0%} of "
            "a step.",
        ],
    )


class Account:
    """Exclusive seconds, and operations, of the operators whose calls are timed."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.operations: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self._open: list[str] = []
        self._since = 0.0

    def time_calls(self, owner: Any, name: str, describe: str | Describe) -> None:
        """Replace `owner.name` by itself with a timer; an operator's counts within a part only."""
        function, is_part = getattr(owner, name), describe in PARTS

        def timed(*args: Any, **kwargs: Any) -> Any:
            label, work = (
                (describe, 0.0) if isinstance(describe, str) else describe(*args, **kwargs)
            )
            if not self._open and not is_part:
                return function(*args, **kwargs)
            self._switch()
            self._open.append(label)
            self.operations[label] += work
            self.calls[label] += 1
            try:
                return function(*args, **kwargs)
            finally:
                self._switch()
                self._open.pop()

        setattr(owner, name, timed)

    def _switch(self) -> None:
        """The time since the last switch belongs to the operator that is open."""
        now = time.perf_counter()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now


def time_parts(account: Account) -> None:
    """Put a timer around the three parts of a step; operators count within them only."""
    from zerogap.engine import sampler
    from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder

    owners = (SharedPromptDecoder, SharedPromptDecoder, sampler)
    for owner, (label, name) in zip(owners, PARTS.items(), strict=True):
        account.time_calls(owner, name, label)


def time_operators(account: Account) -> None:
    """Put a timer around everything that these parts call."""
    import torch

    from zerogap.engine import shared_prompt_attention, shared_prompt_decoder
    from zerogap.engine.kernels import attention_parts, cpu_own_tokens, cpu_products, cpu_rows

    def linear(values: Any, weight: Any, *_: Any) -> tuple[str, float]:
        return product(values, None, len(weight))

    def head(values: Any, weight: Any, **_: Any) -> tuple[str, float]:
        return product(values, None, weight.shape[1])

    def product(values: Any, _: Any, num_columns: int, **__: Any) -> tuple[str, float]:
        depth = values.shape[-1]
        return f"product {depth} → {num_columns}", 2.0 * values.numel() * num_columns

    def gated(values: Any, _: Any, num_columns: int) -> tuple[str, float]:
        return product(values, None, 2 * num_columns)

    def attention(
        query: Any, key: Any, *_: Any, row_of_cell: Any = None, **__: Any
    ) -> tuple[str, float]:
        if row_of_cell is not None:
            return "attention to questions", 0.0  # of different lengths
        return "attention to the prefix", 4.0 * query.numel() * key.shape[-2]

    account.time_calls(torch.nn.functional, "linear", linear)
    account.time_calls(torch, "mm", head)
    account.time_calls(cpu_products, "product", product)
    account.time_calls(cpu_products, "gated_product", gated)
    account.time_calls(cpu_rows, "rms_norm", "norms")
    account.time_calls(cpu_rows, "gated_silu", "activation")
    account.time_calls(cpu_rows, "rotate", "rotation")
    account.time_calls(cpu_rows, "draw", "draw")
    account.time_calls(attention_parts, "part_attention", attention)
    account.time_calls(cpu_own_tokens, "attend", "attention to generated tokens")
    account.time_calls(shared_prompt_attention.StepPass, "attend", "the rest of attention")
    account.time_calls(shared_prompt_attention.StepPass, "update", "storing keys and values")
    account.time_calls(shared_prompt_decoder, "step_plan", "plan of a step")


def measure(model: str, dtype: str, questions: int, samples: int, tokens: int) -> dict[str, Any]:
    """Seconds and operations by operator, steps, and seconds without the operators' timers."""
    from zerogap.engine import loading
    from zerogap.engine.decoder import SamplingParams
    from zerogap.engine.sampler import sample

    decoder = loading.decoder(common.model(model, dtype, "cpu"))
    prompts, tokenizer = common.prompts(model, questions), common.EndlessTokenizer()
    sampling = SamplingParams(num_samples=samples, temperature=0.7, max_new_tokens=tokens)

    def run(account: Account) -> float:
        for counter in (account.seconds, account.operations, account.calls):
            counter.clear()
        list(sample(decoder, prompts, cast(Any, tokenizer), sampling))
        return account.seconds.total()

    account = Account()
    time_parts(account)
    run(account)  # compiles what is not cached yet
    untimed = run(account)
    time_operators(account)
    run(account)
    return {
        "seconds": account.seconds,
        "operations": account.operations,
        "steps": account.calls[REST],
        "untimed": untimed,
    }


if __name__ == "__main__":
    common.run(main, measure)
