"""How often rounding flips a draw when the batch changes, and what exact mode costs.

python benchmarks/reproducibility.py [--model llama2] [--dtype float32]

The uniforms belong to the samples; the logits that they meet are rounded differently in a batch of
another shape. This draws the same samples in a large batch, a small one and in exact mode, and
counts the responses that differ.
"""

import json
import time

import common


def main() -> None:
    args = common.parser(__doc__, questions=40, tokens=96).parse_args()
    found = common.in_child(
        __file__, model=args.model, dtype=args.dtype, device=common.default_device(),
        questions=args.questions, tokens=args.tokens,
    )  # fmt: skip
    common.publish(
        f"Rounding and draws: {args.model}, {args.dtype}, {args.questions} questions × 50 samples",
        ["decoded", "tokens/s", "responses that differ from the first", "solve counts that differ"],
        [
            [one["name"], f"{one['speed']:,.0f}", f"{one['differ']} of {one['all']}", one["counts"]]
            for one in found
        ],
        args.output,
    )


def child(arguments: dict) -> None:
    import dataclasses

    from zerogap.engine import loading
    from zerogap.engine.decoder import SamplingParams
    from zerogap.engine.sampler import sample

    words = common.tokenizer()
    prompts = common.prompts(arguments["model"], arguments["questions"])
    decoder = loading.decoder(
        common.model(arguments["model"], arguments["dtype"], arguments["device"])
    )
    large = SamplingParams(
        temperature=0.7,
        max_new_tokens=arguments["tokens"],
        stop=["Q:"],
        num_samples=50,
        batch_size=1000,
    )
    ways = {
        "1,000 samples together": (large, prompts),
        "1,000 together, questions in reverse": (large, prompts[::-1]),
        "200 together": (dataclasses.replace(large, batch_size=200), prompts),
        "exact": (dataclasses.replace(large, batch_invariant=True), prompts),
        "exact, questions in reverse": (
            dataclasses.replace(large, batch_invariant=True),
            prompts[::-1],
        ),
    }
    reference: dict[str, list] = {}
    rows = []
    for name, (sampling, asked) in ways.items():
        start = time.perf_counter()
        drawn = {
            asked[index].question_id: one for index, one in sample(decoder, asked, words, sampling)
        }
        seconds = time.perf_counter() - start
        flat = [one.token_ids for key in sorted(drawn) for one in drawn[key]]
        key = "exact" if name.startswith("exact") else "batch"
        against = reference.setdefault(key, flat)
        answers = [_answers(drawn[k], words) for k in sorted(drawn)]
        known = reference.setdefault(f"{key} answers", answers)
        rows.append(
            {
                "name": name,
                "speed": sum(map(len, flat)) / seconds,
                "differ": sum(a != b for a, b in zip(flat, against, strict=True)),
                "all": len(flat),
                "counts": sum(a != b for a, b in zip(answers, known, strict=True)),
            }
        )
    print(json.dumps(rows))


def _answers(drawn: list, words) -> list:
    """How often each answer is given: what a solve count is made of."""
    from zerogap.data.answers import extract
    from zerogap.sampling.responses import response_texts

    return sorted(str(extract(said).answer) for said in response_texts(drawn, words, ["Q:"]))


if __name__ == "__main__":
    common.run(main, child)
