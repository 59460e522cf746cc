"""What each strategy costs per step.

python benchmarks/strategies.py [--model llama2]

RailCap and LNE-blocking are measured on the steps of Identity: every response has the same length,
each strategy edits a copy of the step's logits, and the token is drawn from the logits themselves.
So rows, lengths and batches are the same for all of them, and only the edit differs. The table has
the best run's time relative to Identity's best, and the time of the edit relative to all the rest
of the same run, which is less noisy; processor time on a CPU.

Shortcut decodes two models (here of the same shape) and draws from the patched one, so its runs are
compared per computed row.

Samples that agree so far share a row, so a strategy whose samples disperse computes more rows. The
last column counts the rows of the strategy's own responses.
"""

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common


def main() -> None:
    """Measure all strategies and publish the table."""
    args = common.parser(__doc__, questions=20, tokens=64, rows=500, repeats=5).parse_args()
    results, rows_per_token = common.in_child(
        __file__,
        model=args.model, dtype=args.dtype, device=common.default_device(), rows=args.rows,
        questions=args.questions, tokens=args.tokens, repeats=args.repeats,
    )  # fmt: skip
    best = {name: min(run["seconds_per_row"] for run in runs) for name, runs in results.items()}
    rows = []
    for name, runs in results.items():
        edits = [run["edit"] / (run["seconds"] - run["edit"]) for run in runs]
        edit_share = f"{statistics.median(edits):.1%} ({min(edits):.1%} to {max(edits):.1%})"
        rows.append(
            [
                name,
                f"{1 / best[name]:,.0f}",
                f"{best[name] / best['Identity']:.2f}",
                edit_share if any(edits) else "–",
                f"{rows_per_token[name]:.2f}",
            ]
        )
    common.publish(
        f"Strategies on {Path(args.model).name}, {args.dtype}: {args.questions} questions × "
        f"50 samples × {args.tokens} tokens, batch size {args.rows}, rounds: {args.repeats}",
        [
            "strategy", "rows/s (best)", "time relative to Identity", "edit relative to the rest",
            "rows per token of its own responses",
        ],
        rows,
        args.output,
    )  # fmt: skip


def measure(
    model: str, dtype: str, device: str, rows: int, questions: int, tokens: int, repeats: int
) -> tuple[dict[str, list[dict[str, float]]], dict[str, float]]:
    """What each strategy takes.

    Returns:
        Each strategy's runs: seconds, seconds per computed row, seconds in the edit; and the
        computed rows per token of its own responses.
    """
    import torch

    import zerogap
    from zerogap.engine import loading
    from zerogap.engine.decoder import SamplingParams
    from zerogap.engine.patched_decoder import PatchedDecoder
    from zerogap.engine.sampler import sample

    clock = common.clock(device)
    tokenizer, prompts = common.EndlessTokenizer(), common.prompts(model, questions)
    sampling = SamplingParams(
        num_samples=50, temperature=0.7, max_new_tokens=tokens, batch_size=rows
    )
    decoder = loading.decoder(common.model(model, dtype, device))
    context = common.context(decoder, prompts, tokenizer, max_new_tokens=tokens, batch_size=rows)
    base_decoder = loading.decoder(common.model(model, dtype, device), with_logits=False)
    last_layer = decoder.model.config.get_text_config().num_hidden_layers - 1
    neurons = {0: torch.arange(7), last_layer: torch.arange(7)}  # so the base decodes all layers
    edits = {
        "Identity": lambda logits, _: logits,
        "RailCap": zerogap.RailCap().prepare(context).edit_logits,
        "LNE-blocking": zerogap.LNEBlocking().prepare(context).edit_logits,
    }
    # The first draw also takes what happens once.
    own_responses = {"Identity": list(sample(decoder, prompts, tokenizer, sampling))}
    results: dict[str, list[dict[str, float]]] = {name: [] for name in [*edits, "Shortcut"]}
    for _ in range(repeats):
        for name, runs in results.items():
            patched = PatchedDecoder(decoder, base_decoder, neurons) if name == "Shortcut" else None
            edit_seconds = [0.0]
            edit = timed_on_a_copy(edits[name], edit_seconds, device) if name in edits else None
            start = clock()
            samples = list(sample(patched or decoder, prompts, tokenizer, sampling, edit))
            common.synchronize(device)
            seconds = clock() - start
            runs.append(
                {
                    "seconds": seconds,
                    "seconds_per_row": seconds / computed_rows(samples),
                    "edit": edit_seconds[0] if name != "Identity" else 0.0,
                }
            )
            if patched:
                own_responses[name] = samples
                patched.release()
    for name in ("RailCap", "LNE-blocking"):
        own_responses[name] = list(sample(decoder, prompts, tokenizer, sampling, edits[name]))
    num_tokens = len(prompts) * sampling.num_samples * tokens  # no response ends earlier
    return results, {
        name: computed_rows(samples) / num_tokens for name, samples in own_responses.items()
    }


def timed_on_a_copy(
    edit: Callable[..., Any], seconds: list[float], device: str
) -> Callable[..., Any]:
    """An edit of a copy that nothing is drawn from; its time is added to `seconds[0]`."""
    clock = common.clock(device)

    def edit_copy(logits: Any, rows: Any) -> Any:
        copy = logits.clone()
        common.synchronize(device)
        start = clock()
        edit(copy, rows)
        common.synchronize(device)
        seconds[0] += clock() - start
        return logits

    return edit_copy


def computed_rows(samples: list[Any]) -> int:
    """Row steps that were computed: samples that agree so far share a row."""
    total = 0
    for _, responses in samples:
        sequences = [tuple(response.token_ids) for response in responses]
        total += len({ids[: length + 1] for ids in sequences for length in range(len(ids))})
    return total


if __name__ == "__main__":
    common.run(main, measure)
