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
    import numpy as np

    from zerogap.decoding import models
    from zerogap.decoding.sampler import Sampling, sample, shared_prefix

    device = arguments["device"]
    model = common.model(arguments["model"], arguments["dtype"], device)
    prompts = common.prompts(arguments["model"], arguments["questions"])
    bandwidth, rate = _rates(model.dtype, device)
    weights = sum(p.nbytes for p in model.parameters())
    embedding = model.get_input_embeddings().weight
    multiplied = sum(p.numel() for p in model.parameters() if p.ndim == 2)
    if model.get_output_embeddings().weight is not embedding:
        multiplied -= embedding.numel()  # looked up, not multiplied

    decoder = models.decoder(model)
    prefix = shared_prefix(prompts)
    decoder.prefill_prefix(prompts[0].token_ids[:prefix])
    kv_token = decoder.kv_bytes() / prefix
    floors: list[tuple[float, float]] = []
    spent: list[float] = []
    counts: list[int] = []
    step, config = decoder.step, model.config.get_text_config()
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    width = config.num_attention_heads * head

    def timed(tokens):
        cache = decoder._cache
        own = int(cache.row_length.sum())
        questions = int(cache.question_length.sum())
        seen = own + int(cache.question_length[cache.row_slot].sum()) + len(tokens) * prefix
        moved = weights + kv_token * (prefix + questions + own)
        done = 2 * multiplied * len(tokens) + 4 * width * config.num_hidden_layers * seen
        floors.append((moved / bandwidth, done / rate))
        counts.append(len(tokens))
        common.synchronize(device)
        start = time.perf_counter()
        logits = step(tokens)
        common.synchronize(device)
        spent.append(time.perf_counter() - start)
        return logits

    sampling = Sampling(
        temperature=0.7,
        max_new_tokens=arguments["tokens"],
        stop=[],
        samples=arguments["samples"],
        batch_rows=arguments["rows"],
    )
    words = common.Endless(common.tokenizer())
    prefill = 0.0
    admit = decoder.admit

    def timed_admit(questions):
        nonlocal prefill
        common.synchronize(device)
        start = time.perf_counter()
        logits = admit(questions)
        common.synchronize(device)
        prefill += time.perf_counter() - start
        return logits

    decoder.step, decoder.admit = timed, timed_admit
    start = time.perf_counter()
    tokens = sum(
        len(response.token_ids)
        for _, responses in sample(decoder, prompts, words, sampling)
        for response in responses
    )
    common.synchronize(device)
    seconds = time.perf_counter() - start
    by_bytes, by_operations = np.array(floors).T
    result = {
        "speed": tokens / seconds,
        "seconds": seconds,
        "prefill": prefill,
        "stepping": sum(spent),
        "steps": len(spent),
        "rows": float(np.mean(counts)),
        "bandwidth": bandwidth,
        "rate": rate,
        "bytes_floor": float(by_bytes.sum()),
        "operations_floor": float(by_operations.sum()),
        "floor": float(np.maximum(by_bytes, by_operations).sum()),
    }
    print(json.dumps(result))


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
