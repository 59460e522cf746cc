"""Tokens a second of the sampler against `generate(num_return_sequences=m)`, in one process.

python benchmarks/sampler.py [--model FOLDER] [--questions 20] [--samples 50] [--repeats 3]

Both draw m responses to the same few-shot prompts at the same temperature. The ratio is what to
quote: absolute figures belong to a machine. On a CPU set OMP_NUM_THREADS to what a job gets.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

sys.path.insert(0, str(Path(__file__).parents[1] / "workflow"))

from zerogap.data import prompts  # noqa: E402
from zerogap.data.problems import problems  # noqa: E402
from zerogap.decoding.cache import CachedModel  # noqa: E402
from zerogap.decoding.sampler import Prompt, Sampling, sample  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="workflow/resources/bases/llama2")
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--samples", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()

    tokenizer = AutoTokenizer.from_pretrained(args.model)
    prefix = prompts.few_shot_prefix(prompts.exemplars("generated", 2))
    asked = [prompts.prompt(prefix, one.question) for one in problems(args.questions, 0, "test")]
    made = [Prompt(str(i), ids) for i, ids in enumerate(tokenizer(asked)["input_ids"])]
    sampling = Sampling(
        temperature=0.7, max_new_tokens=96, stop=["Q:"], samples=args.samples, batch_rows=500
    )
    speeds: dict[str, list[float]] = {"zerogap": [], "generate": []}
    for repeat in range(args.repeats):
        model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
        start = time.perf_counter()
        tokens = generated(model, tokenizer, made, args.samples, repeat)
        speeds["generate"].append(tokens / (time.perf_counter() - start))
        decoder = CachedModel(model)
        start = time.perf_counter()
        drawn = list(sample(decoder, made, tokenizer, sampling))
        tokens = sum(len(one.token_ids) for _, responses in drawn for one in responses)
        speeds["zerogap"].append(tokens / (time.perf_counter() - start))
    for name, values in speeds.items():
        print(f"{name:10} {statistics.median(values):10,.0f} tokens/s (median of {args.repeats})")
    pairs = [a / b for a, b in zip(speeds["zerogap"], speeds["generate"], strict=True)]
    print(f"ratio      {statistics.median(pairs):10.1f}  ({min(pairs):.1f} to {max(pairs):.1f})")


@torch.inference_mode()
def generated(model, tokenizer, made: list[Prompt], samples: int, seed: int) -> int:
    """Tokens up to each response's end that `generate` makes, a question at a time."""
    torch.manual_seed(seed)
    total = 0
    for prompt in made:
        ids = torch.tensor([prompt.token_ids])
        out = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=True,
            temperature=0.7,
            top_k=0,
            num_return_sequences=samples,
            max_new_tokens=96,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.eos_token_id,
        )[:, ids.shape[1] :]
        ended = (out == tokenizer.eos_token_id).cumsum(1).clamp(max=1)
        total += int((ended == 0).sum() + ended.any(1).sum())
    return total


if __name__ == "__main__":
    main()
