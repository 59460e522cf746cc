"""The sampler against `generate`: tokens a second and peak memory, on the same work.

python benchmarks/sampler.py                     # the embedded Llama, float32
python benchmarks/sampler.py --model llama-160m  # Llama-shaped, random weights, eight shots
python benchmarks/sampler.py --model llama-2-7b --dtype bfloat16 --tokens 128  # on a GPU

Contenders, each in a process of its own: zerogap; `generate(num_return_sequences=m)` a question at
a time, which is its best batch; `generate` from a prefilled prompt whose cache is repeated for
every sample. All draw m responses of the same length to the same prompts at the same temperature.
The two `generate`s do a question at a time at any rate, so fewer questions tell their speed.
"""

import copy
import json
import time

import common


def main() -> None:
    parser = common.parser(__doc__, questions=20, samples=50, tokens=64, repeats=3)
    parser.add_argument("--generate-questions", type=int, default=1)
    parser.add_argument("--rows", type=int, help="samples together; as many as fit without it")
    args = parser.parse_args()
    shared = {
        "model": args.model, "dtype": args.dtype, "samples": args.samples, "tokens": args.tokens,
        "device": common.default_device(),
    }  # fmt: skip
    plan = {
        "zerogap": {"questions": args.questions, "rows": args.rows},
        "zerogap, a question at a time": {
            "questions": args.generate_questions,
            "rows": args.samples,
        },
        "generate, prompt prefilled once": {"questions": args.generate_questions},
        "generate": {"questions": args.generate_questions},
    }
    found: dict[str, list[dict]] = {name: [] for name in plan}
    for _ in range(args.repeats):
        for name, own in plan.items():
            found[name].append(common.in_child(__file__, contender=name, **shared, **own))
    best = {name: max(runs, key=lambda run: run["speed"]) for name, runs in found.items()}
    rows = []
    for name, runs in found.items():
        ratios = sorted(
            ours["speed"] / run["speed"] for ours, run in zip(found["zerogap"], runs, strict=True)
        )
        rows.append(
            [
                name,
                f"{best[name]['speed']:,.0f}",
                f"{ratios[len(ratios) // 2]:.1f} ({ratios[0]:.1f} to {ratios[-1]:.1f})",
                f"{best[name]['peak'] / 2**20:,.0f}",
                str(best[name]["questions"]),
            ]
        )
    prompt = best["zerogap"]["prompt"]
    common.publish(
        f"{args.model}, {args.dtype}: {args.samples} samples of {args.tokens} tokens behind "
        f"{prompt} prompt tokens",
        ["sampler", "tokens/s (best)", "zerogap is × faster", "MiB above weights", "questions"],
        rows,
        args.output,
    )


def child(arguments: dict) -> None:
    print(json.dumps(measured(arguments)))


def measured(arguments: dict) -> dict:
    """Tokens a second and peak memory of one contender."""
    device, dtype = arguments["device"], arguments["dtype"]
    model = common.model(arguments["model"], dtype, device)
    prompts = common.prompts(arguments["model"], arguments["questions"])
    before = common.held_bytes(device)
    kind = arguments["contender"]
    run = (
        _zerogap if kind.startswith("zerogap") else _prefilled if "prefilled" in kind else _generate
    )
    start = time.perf_counter()
    tokens = run(model, prompts, arguments)
    common.synchronize(device)
    seconds = time.perf_counter() - start
    return {
        "speed": tokens / seconds,
        "peak": common.peak_bytes(device) - before,
        "questions": arguments["questions"],
        "prompt": len(prompts[0].token_ids),
    }


def _zerogap(model, prompts, arguments) -> int:
    from zerogap.engine import loading
    from zerogap.engine.decoder import SamplingParams
    from zerogap.engine.sampler import sample

    sampling = SamplingParams(
        temperature=0.7,
        max_new_tokens=arguments["tokens"],
        stop=[],
        num_samples=arguments["samples"],
        batch_size=arguments["rows"] or "auto",
    )
    decoder = loading.decoder(model)
    drawn = sample(decoder, prompts, common.Endless(common.tokenizer()), sampling)
    return sum(len(response.token_ids) for _, responses in drawn for response in responses)


def _options(arguments) -> dict:
    return {
        "do_sample": True, "temperature": 0.7, "top_k": 0, "pad_token_id": 0, "eos_token_id": None,
        "max_new_tokens": arguments["tokens"], "min_new_tokens": arguments["tokens"],
    }  # fmt: skip


def _generate(model, prompts, arguments) -> int:
    import torch

    total = 0
    for prompt in prompts:
        ids = torch.tensor([prompt.token_ids], device=model.device)
        with torch.inference_mode():
            out = model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                num_return_sequences=arguments["samples"],
                **_options(arguments),
            )
        total += out[:, ids.shape[1] :].numel()
    return total


def _prefilled(model, prompts, arguments) -> int:
    """The few-shot prefix once for all questions, a question once for all its samples."""
    import torch
    from transformers import DynamicCache

    from zerogap.engine.sampler import shared_prefix_length

    total = 0
    with torch.inference_mode():
        shots = DynamicCache(config=model.config)
        prefix = (
            shared_prefix_length(prompts) if len(prompts) > 1 else len(prompts[0].token_ids) - 60
        )
        model(
            torch.tensor([prompts[0].token_ids[:prefix]], device=model.device),
            past_key_values=shots,
        )
        for prompt in prompts:
            ids = torch.tensor([prompt.token_ids], device=model.device)
            cache = copy.deepcopy(shots)
            model(ids[:, prefix:-1], past_key_values=cache)
            cache.batch_repeat_interleave(arguments["samples"])
            rows = ids.repeat(arguments["samples"], 1)
            out = model.generate(
                rows,
                attention_mask=torch.ones_like(rows),
                past_key_values=cache,
                **_options(arguments),
            )
            total += out[:, ids.shape[1] :].numel()
    return total


if __name__ == "__main__":
    common.run(main, child)
