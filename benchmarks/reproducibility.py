"""How often rounding changes a draw when the batch changes, and what batch invariance costs.

python benchmarks/reproducibility.py [--model llama2] [--dtype float32]

The uniform numbers belong to the samples, but logits are rounded differently in a batch of another
shape. This draws the same samples in a large batch, in a small one and batch-invariantly, and
counts the responses that differ.
"""

import time
from pathlib import Path
from typing import Any

import common

NUM_SAMPLES = 50


def main() -> None:
    """Draw in all ways and publish the table."""
    args = common.parser(__doc__, questions=40, tokens=96).parse_args()
    results = common.in_child(
        __file__, model=args.model, dtype=args.dtype, device=common.default_device(),
        questions=args.questions, tokens=args.tokens,
    )  # fmt: skip
    common.publish(
        f"Rounding and draws: {Path(args.model).name}, {args.dtype}, {args.questions} questions × "
        f"{NUM_SAMPLES} samples",
        ["decoded", "tokens/s", "responses that differ", "solve counts that differ"],
        [
            [
                result["name"],
                f"{result['speed']:,.0f}",
                f"{result['different']:,} of {result['responses']:,}",
                str(result["different_counts"]),
            ]
            for result in results
        ],
        args.output,
    )


def measure(
    model: str, dtype: str, device: str, questions: int, tokens: int
) -> list[dict[str, Any]]:
    """Each way compared with the first one of its kind: batched, or batch-invariant."""
    import dataclasses

    from zerogap.engine import loading
    from zerogap.engine.decoder import SamplingParams
    from zerogap.engine.sampler import sample

    tokenizer = common.tokenizer(model)
    prompts = common.prompts(model, questions)
    decoder = loading.decoder(common.model(model, dtype, device))
    large = SamplingParams(
        num_samples=NUM_SAMPLES,
        temperature=0.7,
        max_new_tokens=tokens,
        stop=["Q:"],
        batch_size=1000,
    )
    small = dataclasses.replace(large, batch_size=200)
    invariant = dataclasses.replace(large, batch_invariant=True)
    ways = {
        "batch size 1,000": (large, prompts),
        "batch size 1,000, questions reversed": (large, prompts[::-1]),
        "batch size 200": (small, prompts),
        "batch-invariant": (invariant, prompts),
        "batch-invariant, questions reversed": (invariant, prompts[::-1]),
    }
    list(sample(decoder, prompts[:1], tokenizer, small))  # takes what happens once
    references: dict[bool, tuple[list[Any], list[Any]]] = {}
    results = []
    for name, (sampling, ordered_prompts) in ways.items():
        start = time.perf_counter()
        samples = sample(decoder, ordered_prompts, tokenizer, sampling)
        by_question = {ordered_prompts[index].question_id: drawn for index, drawn in samples}
        seconds = time.perf_counter() - start
        token_ids = [one.token_ids for key in sorted(by_question) for one in by_question[key]]
        answers = [_answers(by_question[key], tokenizer) for key in sorted(by_question)]
        reference = references.setdefault(sampling.batch_invariant, (token_ids, answers))
        results.append(
            {
                "name": name,
                "speed": sum(map(len, token_ids)) / seconds,
                "responses": len(token_ids),
                "different": sum(a != b for a, b in zip(token_ids, reference[0], strict=True)),
                "different_counts": sum(a != b for a, b in zip(answers, reference[1], strict=True)),
            }
        )
    return results


def _answers(responses: list[Any], tokenizer: Any) -> list[str]:
    """All answers to a question, sorted: what its solve count depends on."""
    from zerogap.data.answers import extract
    from zerogap.sampling.responses import response_texts

    return sorted(
        str(extract(text).answer) for text in response_texts(responses, tokenizer, ["Q:"])
    )


if __name__ == "__main__":
    common.run(main, measure)
