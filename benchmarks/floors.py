"""How near the sampler comes to what the hardware allows.

python benchmarks/floors.py --model smollm2-135m
python benchmarks/floors.py --model llama-2-7b --dtype bfloat16 --tokens 128    # on a GPU

Two rates are measured on the device in the same run: bytes per second (copying a large tensor) and
operations per second (a large matrix product in the model's dtype). A step takes at least the time
to read the weights, keys and values once, and at least the time of its multiplications. The floor
of a run is the sum over its steps of the larger of the two.
"""

import time
from collections.abc import Callable
from typing import Any

import common


def main() -> None:
    """Measure a run and publish its speed next to the floors."""
    parser = common.parser(__doc__, model="smollm2-135m", questions=20, samples=50, tokens=64)
    parser.add_argument("--rows", type=int, help="batch size; by default as many as fit")
    args = parser.parse_args()
    result = common.in_child(
        __file__,
        model=args.model, dtype=args.dtype, device=common.default_device(), rows=args.rows,
        questions=args.questions, samples=args.samples, tokens=args.tokens,
    )  # fmt: skip
    rows = [
        ["tokens/s", f"{result['speed']:,.0f}"],
        ["seconds", f"{result['seconds']:.1f}"],
        ["of these, prefix and questions", f"{result['prefill']:.1f}"],
        ["of these, decoding steps", f"{result['stepping']:.1f}"],
        ["steps", f"{result['steps']:,}"],
        ["peak memory, GiB", f"{result['peak'] / 2**30:.1f}"],
        ["rows per step (mean)", f"{result['rows']:.0f}"],
        ["measured GB/s", f"{result['bandwidth'] / 1e9:,.0f}"],
        ["measured GFLOP/s", f"{result['rate'] / 1e9:,.0f}"],
        ["floor of the steps by bytes, s", f"{result['bytes_floor']:.1f}"],
        ["floor of the steps by operations, s", f"{result['operations_floor']:.1f}"],
        ["floor of the steps, s", f"{result['floor']:.1f}"],
        ["floor / time of the steps", f"{result['floor'] / result['stepping']:.0%}"],
        ["floor / time of the run", f"{result['floor'] / result['seconds']:.0%}"],
    ]
    common.publish(
        f"{args.model}, {args.dtype}: {args.questions} questions × {args.samples} samples × "
        f"{args.tokens} tokens",
        ["", "value"],
        rows,
        args.output,
    )


class _TimedDecoder:
    """A decoder whose calls are timed, and whose steps are counted in bytes and operations.

    Args:
        decoder: a `SharedPromptDecoder`.
        prefix: tokens of the shared prefix.
        bandwidth: bytes per second.
        rate: operations per second.
    """

    def __init__(self, decoder: Any, prefix: int, bandwidth: float, rate: float) -> None:
        self._decoder, self._prefix = decoder, prefix
        self._bandwidth, self._rate = bandwidth, rate
        self._weights, self._multiplied, self._attentions = work(decoder.model)
        self._kv_bytes_per_token = decoder.kv_bytes() / prefix
        self.bytes_floors: list[float] = []  # seconds, per step
        self.operations_floors: list[float] = []
        self.row_counts: list[int] = []
        self.prefill_seconds = self.step_seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._decoder, name)

    def prefill_prompts(self, prompts: list[list[int]]) -> Any:
        """Prefill prompts and add the time."""
        logits, seconds = self._timed(self._decoder.prefill_prompts, prompts)
        self.prefill_seconds += seconds
        return logits

    def step(self, tokens: Any) -> Any:
        """Run a step, add its time and count its work."""
        self._count_work()
        logits, seconds = self._timed(self._decoder.step, tokens)
        self.step_seconds += seconds
        return logits

    def _timed(self, action: Callable[..., Any], values: Any) -> tuple[Any, float]:
        device = self._decoder.device.type
        common.synchronize(device)
        start = time.perf_counter()
        result = action(values)
        common.synchronize(device)
        return result, time.perf_counter() - start

    def _count_work(self) -> None:
        import numpy as np

        cache = self._decoder._cache
        own = cache.num_generated + 1
        seen = self._prefix + cache.question_length[cache.row_question] + own
        question_tokens = cache.question_length[np.unique(cache.row_question)].sum()
        stored = self._prefix + question_tokens + own.sum()
        num_bytes = self._weights + self._kv_bytes_per_token * stored
        attended = sum(4 * width * np.minimum(seen, far).sum() for width, far in self._attentions)
        self.bytes_floors.append(num_bytes / self._bandwidth)
        self.operations_floors.append((2 * self._multiplied * len(seen) + attended) / self._rate)
        self.row_counts.append(len(seen))


def measure(
    model: str, dtype: str, device: str, rows: int | None, questions: int, samples: int, tokens: int
) -> dict[str, float]:
    """Seconds of a run and of its parts, and the floors of its steps."""
    import numpy as np

    from zerogap.engine import loading
    from zerogap.engine.decoder import SamplingParams
    from zerogap.engine.sampler import sample, shared_prefix_length

    hf_model = common.model(model, dtype, device)
    prompts = common.prompts(model, questions)
    bandwidth, rate = rates(hf_model.dtype, device)
    prefix = shared_prefix_length(prompts)
    decoder = loading.decoder(hf_model)
    decoder.prefill_prefix(prompts[0].token_ids[:prefix])
    timed = _TimedDecoder(decoder, prefix, bandwidth, rate)
    sampling = SamplingParams(
        num_samples=samples, temperature=0.7, max_new_tokens=tokens, batch_size=rows or "auto"
    )
    if device == "cuda":  # steps are captured when they are first met
        list(sample(decoder, prompts, common.EndlessTokenizer(), sampling))
    start = time.perf_counter()
    responses = sample(timed, prompts, common.EndlessTokenizer(), sampling)
    num_tokens = sum(len(response.token_ids) for _, drawn in responses for response in drawn)
    common.synchronize(device)
    seconds = time.perf_counter() - start
    return {
        "tokens": num_tokens,
        "speed": num_tokens / seconds,
        "seconds": seconds,
        "prefill": timed.prefill_seconds,
        "stepping": timed.step_seconds,
        "steps": len(timed.row_counts),
        "rows": float(np.mean(timed.row_counts)),
        "bandwidth": bandwidth,
        "rate": rate,
        "bytes_floor": float(np.sum(timed.bytes_floors)),
        "operations_floor": float(np.sum(timed.operations_floors)),
        "floor": float(np.maximum(timed.bytes_floors, timed.operations_floors).sum()),
        "peak": common.peak_bytes(device),
    }


def work(model: Any) -> tuple[int, int, list[tuple[int, int]]]:
    """What a step has to do.

    Embedding tables in which a row only looks up its token do not count.

    Returns:
        Bytes of weights to read; weights that each row is multiplied by; for every attention layer
        the width of all its heads and the number of tokens that it sees.
    """
    import torch

    head = model.get_output_embeddings().weight
    tables = [m.weight for m in model.modules() if isinstance(m, torch.nn.Embedding)]
    lookup_only = {id(table) for table in tables if table is not head}
    weights = [weight for weight in model.parameters() if id(weight) not in lookup_only]
    heads = model.config.get_text_config().num_attention_heads
    attentions = [
        (heads * getattr(m, "head_dim", getattr(m, "head_size", 0)), _window(m))
        for m in model.modules()
        if hasattr(m, "layer_idx") and hasattr(m, "scaling")
    ]
    multiplied = sum(weight.numel() for weight in weights if weight.ndim == 2)
    return sum(weight.nbytes for weight in weights), multiplied, attentions


def _window(attention: Any) -> int:
    return getattr(attention, "sliding_window", None) or 2**40


def rates(dtype: Any, device: str) -> tuple[float, float]:
    """Bytes per second of a copy (read and written), operations per second of a matrix product."""
    import torch

    large = device == "cuda"
    source = torch.empty(2**30 if large else 2**28, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    size = 8192 if large else 2048
    left = torch.randn(size, size, device=device).to(dtype)

    def best(action: Callable[[], object]) -> float:
        times = []
        for _ in range(6):
            common.synchronize(device)
            start = time.perf_counter()
            action()
            common.synchronize(device)
            times.append(time.perf_counter() - start)
        return min(times)

    copy_seconds = best(lambda: target.copy_(source))
    product_seconds = best(lambda: left @ left)
    return 2 * source.numel() / copy_seconds, 2 * size**3 / product_seconds


if __name__ == "__main__":
    common.run(main, measure)
