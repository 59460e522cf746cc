"""The sampler against `generate`: tokens per second and peak memory on the same work.

python benchmarks/sampler.py                     # the Llama toy model, float32
python benchmarks/sampler.py --model llama-160m  # Llama shape, random weights, eight shots
python benchmarks/sampler.py --model llama-2-7b --dtype bfloat16 --tokens 128  # on a GPU

Contenders, each in a process of its own: zerogap; zerogap with one question at a time;
`generate(num_return_sequences=…)` for one question at a time, its best batch; and `generate` from a
prefilled prompt whose cache is repeated for every sample. All draw the same number of responses of
the same length to the same prompts at the same temperature. The speed of `generate` does not depend
on the number of questions, so it gets fewer.
"""

import copy
import statistics
import time
from typing import Any

import common

PREFILLED = "generate, prompt prefilled once"


def main() -> None:
    """Measure all contenders in turn and publish the table."""
    parser = common.parser(__doc__, questions=20, samples=50, tokens=64, repeats=3)
    parser.add_argument("--generate-questions", type=int, default=1)
    parser.add_argument("--rows", type=int, help="batch size; by default as many as fit")
    args = parser.parse_args()
    shared = {
        "model": args.model, "dtype": args.dtype, "samples": args.samples, "tokens": args.tokens,
        "device": common.default_device(),
    }  # fmt: skip
    one_at_a_time = {"questions": args.generate_questions, "rows": args.samples}
    plan = {
        "zerogap": {"questions": args.questions, "rows": args.rows},
        "zerogap, one question at a time": one_at_a_time,
        PREFILLED: one_at_a_time,
        "generate": one_at_a_time,
    }
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in plan}
    for _ in range(args.repeats):
        for name, options in plan.items():
            results[name].append(common.in_child(__file__, contender=name, **(shared | options)))
    rows = []
    for name, runs in results.items():
        ratios = [
            reference["speed"] / run["speed"]
            for reference, run in zip(results["zerogap"], runs, strict=True)
        ]
        best = max(runs, key=lambda run: run["speed"])
        rows.append(
            [
                name,
                f"{best['speed']:,.0f}",
                f"{statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})",
                f"{best['peak'] / 2**20:,.0f}",
                str(best["questions"]),
            ]
        )
    prompt_tokens = results["zerogap"][0]["prompt"]
    common.publish(
        f"{args.model}, {args.dtype}: {args.samples} samples of {args.tokens} tokens behind "
        f"{prompt_tokens} prompt tokens",
        ["sampler", "tokens/s (best)", "speed-up of zerogap", "MiB above weights", "questions"],
        rows,
        args.output,
    )


def measure(
    contender: str,
    model: str,
    dtype: str,
    device: str,
    samples: int,
    tokens: int,
    questions: int,
    rows: int | None,
) -> dict[str, Any]:
    """Tokens per second and peak memory of one contender."""
    hf_model = common.model(model, dtype, device)
    prompts = common.prompts(model, questions)
    before = common.current_bytes(device)
    start = time.perf_counter()
    if contender.startswith("zerogap"):
        num_tokens = _zerogap(hf_model, prompts, samples, tokens, rows)
    elif contender == PREFILLED:
        num_tokens = _generate_prefilled(hf_model, prompts, samples, tokens)
    else:
        num_tokens = _generate(hf_model, prompts, samples, tokens)
    common.synchronize(device)
    return {
        "speed": num_tokens / (time.perf_counter() - start),
        "peak": common.peak_bytes(device) - before,
        "questions": questions,
        "prompt": len(prompts[0].token_ids),
    }


def _zerogap(model: Any, prompts: list[Any], samples: int, tokens: int, rows: int | None) -> int:
    from zerogap.engine import loading
    from zerogap.engine.decoder import SamplingParams
    from zerogap.engine.sampler import sample

    sampling = SamplingParams(
        num_samples=samples, temperature=0.7, max_new_tokens=tokens, batch_size=rows or "auto"
    )
    responses = sample(loading.decoder(model), prompts, common.EndlessTokenizer(), sampling)
    return sum(len(response.token_ids) for _, drawn in responses for response in drawn)


def _options(tokens: int) -> dict[str, Any]:
    return {
        "do_sample": True, "temperature": 0.7, "top_k": 0, "pad_token_id": 0, "eos_token_id": None,
        "max_new_tokens": tokens, "min_new_tokens": tokens,
    }  # fmt: skip


def _generate(model: Any, prompts: list[Any], samples: int, tokens: int) -> int:
    import torch

    total = 0
    for prompt in prompts:
        ids = torch.tensor([prompt.token_ids], device=model.device)
        with torch.inference_mode():
            out = model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                num_return_sequences=samples,
                **_options(tokens),
            )
        total += out[:, ids.shape[1] :].numel()
    return total


def _generate_prefilled(model: Any, prompts: list[Any], samples: int, tokens: int) -> int:
    """The few-shot prefix once for all questions, a question once for all its samples."""
    import torch
    from transformers import DynamicCache

    from zerogap.engine.sampler import shared_prefix_length

    total = 0
    with torch.inference_mode():
        prefix_cache = DynamicCache(config=model.config)
        only_one = len(prompts) == 1  # the whole prompt would be its prefix
        prefix = len(prompts[0].token_ids) - 60 if only_one else shared_prefix_length(prompts)
        prefix_ids = torch.tensor([prompts[0].token_ids[:prefix]], device=model.device)
        model(prefix_ids, past_key_values=prefix_cache)
        for prompt in prompts:
            ids = torch.tensor([prompt.token_ids], device=model.device)
            cache = copy.deepcopy(prefix_cache)
            model(ids[:, prefix:-1], past_key_values=cache)
            cache.batch_repeat_interleave(samples)
            rows = ids.repeat(samples, 1)
            out = model.generate(
                rows,
                attention_mask=torch.ones_like(rows),
                past_key_values=cache,
                **_options(tokens),
            )
            total += out[:, ids.shape[1] :].numel()
    return total


if __name__ == "__main__":
    common.run(main, measure)
