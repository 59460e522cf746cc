"""How near the sampler comes to what the hardware allows.

python benchmarks/floors.py --model llama-160m
python benchmarks/floors.py --model llama-2-7b --dtype bfloat16 --tokens 128    # on a GPU

Two rates are measured on the device in the same run: bytes a second (copying a large tensor) and
operations a second (a large matrix product in the model's type). A step cannot take less time than
reading the weights and the keys and values once, nor than its multiplications; the floor of a run
is the sum over its steps of the larger of the two. Random weights, made on the device: nothing is
downloaded.
"""

import json
import time

import common


def main() -> None:
    parser = common.parser(__doc__, model="llama-160m", questions=20, samples=50, tokens=64)
    parser.add_argument("--rows", type=int, help="samples together; as many as fit without it")
    args = parser.parse_args()
    found = common.in_child(
        __file__,
        model=args.model, dtype=args.dtype, device=common.default_device(), rows=args.rows,
        questions=args.questions, samples=args.samples, tokens=args.tokens,
    )  # fmt: skip
    rows = [
        ["tokens/s", f"{found['speed']:,.0f}"],
        ["seconds", f"{found['seconds']:.1f}"],
        ["… of them prefix and questions", f"{found['prefill']:.1f}"],
        ["… of them decoding steps", f"{found['stepping']:.1f}"],
        ["steps", f"{found['steps']:,}"],
        ["peak memory, GiB", f"{found['peak'] / 2**30:.1f}"],
        ["rows a step (mean)", f"{found['rows']:.0f}"],
        ["measured GB/s", f"{found['bandwidth'] / 1e9:,.0f}"],
        ["measured GFLOP/s", f"{found['rate'] / 1e9:,.0f}"],
        ["floor of the steps by bytes, s", f"{found['bytes_floor']:.1f}"],
        ["floor of the steps by operations, s", f"{found['operations_floor']:.1f}"],
        ["floor of the steps, s", f"{found['floor']:.1f}"],
        ["share of the floor reached by the steps", f"{found['floor'] / found['stepping']:.0%}"],
        ["share of the floor reached by the run", f"{found['floor'] / found['seconds']:.0%}"],
    ]
    common.publish(
        f"{args.model}, {args.dtype}: {args.questions} questions × {args.samples} samples × "
        f"{args.tokens} tokens",
        ["", "value"],
        rows,
        args.output,
    )


def child(arguments: dict) -> None:
    print(json.dumps(measured(**arguments)))


def measured(
    model: str, dtype: str, device: str, rows: int | None, questions: int, samples: int, tokens: int
) -> dict[str, float]:
    """Seconds of a run and of its parts, and the floors of its steps."""
    import numpy as np

    from zerogap.engine import loading
    from zerogap.engine.decoder import SamplingParams
    from zerogap.engine.sampler import sample, shared_prefix_length

    made = common.model(model, dtype, device)
    prompts = common.prompts(model, questions)
    bandwidth, rate = _rates(made.dtype, device)
    weights, multiplied, attentions = work(made)
    decoder = loading.decoder(made)
    prefix = shared_prefix_length(prompts)
    decoder.prefill_prefix(prompts[0].token_ids[:prefix])
    kv_token = decoder.kv_bytes() / prefix
    by_bytes: list[float] = []
    by_operations: list[float] = []
    counts: list[int] = []
    step, admit = decoder.step, decoder.prefill_prompts
    spent = {step: 0.0, admit: 0.0}

    def timed(action, values):
        common.synchronize(device)
        start = time.perf_counter()
        result = action(values)
        common.synchronize(device)
        spent[action] += time.perf_counter() - start
        return result

    def counted(tokens):
        cache = decoder._cache
        own = cache.row_length + 1
        seen = prefix + cache.question_length[cache.row_question] + own
        held = prefix + cache.question_length[np.unique(cache.row_question)].sum() + own.sum()
        by_bytes.append((weights + kv_token * held) / bandwidth)
        attended = sum(4 * width * np.minimum(seen, window).sum() for width, window in attentions)
        by_operations.append((2 * multiplied * len(seen) + attended) / rate)
        counts.append(len(seen))
        return timed(step, tokens)

    decoder.step, decoder.prefill_prompts = counted, lambda asked: timed(admit, asked)
    sampling = SamplingParams(
        temperature=0.7,
        max_new_tokens=tokens,
        stop=[],
        num_samples=samples,
        batch_size=rows or "auto",
    )
    start = time.perf_counter()
    drawn = sum(
        len(response.token_ids)
        for _, responses in sample(decoder, prompts, common.Endless(common.tokenizer()), sampling)
        for response in responses
    )
    common.synchronize(device)
    seconds = time.perf_counter() - start
    return {
        "tokens": drawn,
        "speed": drawn / seconds,
        "seconds": seconds,
        "prefill": spent[admit],
        "stepping": spent[step],
        "steps": len(counts),
        "rows": float(np.mean(counts)),
        "bandwidth": bandwidth,
        "rate": rate,
        "bytes_floor": float(np.sum(by_bytes)),
        "operations_floor": float(np.sum(by_operations)),
        "floor": float(np.maximum(by_bytes, by_operations).sum()),
        "peak": common.peak_bytes(device),
    }


def work(model) -> tuple[int, int, list[tuple[int, int]]]:
    """What a step must do: bytes of weights to read, weights to multiply each row by, and of every
    attention the width of its heads together and how far it sees. Tables in which a row looks up
    its token are neither read nor multiplied whole.
    """
    import torch

    head = model.get_output_embeddings().weight
    tables = [m.weight for m in model.modules() if isinstance(m, torch.nn.Embedding)]
    looked_up = {id(table) for table in tables if table is not head}
    used = [one for one in model.parameters() if id(one) not in looked_up]
    heads = model.config.get_text_config().num_attention_heads
    attentions = [
        (heads * getattr(m, "head_dim", getattr(m, "head_size", 0)), _window(m))
        for m in model.modules()
        if hasattr(m, "layer_idx") and hasattr(m, "scaling")
    ]
    multiplied = sum(one.numel() for one in used if one.ndim == 2)
    return sum(one.nbytes for one in used), multiplied, attentions


def _window(attention) -> int:
    return getattr(attention, "sliding_window", None) or 2**40


def _rates(dtype, device: str) -> tuple[float, float]:
    """Bytes a second of a copy (read and written) and operations a second of a matrix product."""
    import torch

    large = device == "cuda"
    source = torch.empty(2**30 if large else 2**28, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    size = 8192 if large else 2048
    left = torch.randn(size, size, device=device).to(dtype)

    def best(action) -> float:
        times = []
        for _ in range(6):
            common.synchronize(device)
            start = time.perf_counter()
            action()
            common.synchronize(device)
            times.append(time.perf_counter() - start)
        return min(times)

    copied = best(lambda: target.copy_(source))
    product = best(lambda: left @ left)
    return 2 * source.numel() / copied, 2 * size**3 / product


if __name__ == "__main__":
    common.run(main, child)
