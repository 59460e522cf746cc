"""What each strategy costs at a step.

python benchmarks/strategies.py [--model llama2]

RailCap and LNE-blocking are given the very steps of Identity's run: every response has the same
length, each contender copies the step's logits and edits the copy, and the token is drawn from the
logits themselves. So rows, lengths and batches are the same for all, along greedy trajectories as
in earnest, and only the edit differs. Told are the best run's time over Identity's best, and within
one run the time in the edit over all the rest, which is less noisy: seconds of the processor on a
CPU. Shortcut
decodes two models by its nature (a donor of the same shape) and draws from what it makes: its runs
are compared for each row computed.
"""

import json
import statistics

import common


def main() -> None:
    args = common.parser(__doc__, questions=20, tokens=64, rows=500, repeats=5).parse_args()
    found = common.in_child(
        __file__,
        model=args.model, dtype=args.dtype, device=common.default_device(), rows=args.rows,
        questions=args.questions, tokens=args.tokens, repeats=args.repeats,
    )  # fmt: skip
    best = {name: min(run["row seconds"] for run in runs) for name, runs in found.items()}
    rows = []
    for name, runs in found.items():
        edits = [run["edit"] / (run["seconds"] - run["edit"]) for run in runs]
        share = f"{statistics.median(edits):.1%} ({min(edits):.1%} to {max(edits):.1%})"
        rows.append(
            [
                name,
                f"{1 / best[name]:,.0f}",
                f"{best[name] / best['Identity']:.2f}",
                share if any(edits) else "–",
            ]
        )
    common.publish(
        f"Strategies on {args.model}, {args.dtype}: {args.questions} questions × 50 samples × "
        f"{args.tokens} tokens, {args.rows} samples together, {args.repeats} rounds",
        ["strategy", "rows/s (best)", "time over Identity's", "edit over all else (range)"],
        rows,
        args.output,
    )


def child(arguments: dict) -> None:
    print(json.dumps(measured(**arguments)))


def measured(
    model: str, dtype: str, device: str, rows: int, questions: int, tokens: int, repeats: int
) -> dict[str, list[dict[str, float]]]:
    """Every strategy's runs: seconds, seconds for a computed row, seconds in the edit."""
    import torch

    import zerogap
    from zerogap.engine import loading
    from zerogap.engine.decoder import SamplingParams
    from zerogap.engine.sampler import greedy, sample
    from zerogap.strategies.base import Context
    from zerogap.strategies.shortcut import PatchedDecoder

    clock = common.clock(device)
    words, prompts = common.Endless(common.tokenizer()), common.prompts(model, questions)
    sampling = SamplingParams(
        temperature=0.7, max_new_tokens=tokens, stop=[], num_samples=50, batch_size=rows
    )
    decoder = loading.decoder(common.model(model, dtype, device))
    plain = SamplingParams(temperature=0, max_new_tokens=tokens, stop=[], batch_size=rows)
    trajectories = greedy(decoder, prompts, words, plain)
    context = Context(
        [one.token_ids for one in trajectories], [one.entropy for one in trajectories]
    )
    donor = loading.decoder(common.model(model, dtype, device), with_logits=False)
    neurons = {0: torch.arange(7), 1: torch.arange(7)}
    edits = {
        "Identity": lambda logits, _: logits,
        "RailCap": zerogap.RailCap().prepare(context).edit_logits,
        "LNE-blocking": zerogap.LNEBlocking().prepare(context).edit_logits,
    }
    list(sample(decoder, prompts, words, sampling))  # what is slow only once
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in [*edits, "Shortcut"]}
    for _ in range(repeats):
        for name, done in runs.items():
            patched = PatchedDecoder(decoder, donor, neurons) if name == "Shortcut" else None
            inside = [0.0]
            edit = _beside(edits[name], inside, device) if name in edits else None
            start = clock()
            drawn = list(sample(patched or decoder, prompts, words, sampling, edit))
            common.synchronize(device)
            seconds = clock() - start
            done.append(
                {
                    "seconds": seconds,
                    "row seconds": seconds / _distinct(drawn),
                    "edit": inside[0] if name != "Identity" else 0.0,
                }
            )
            if patched:
                patched.release()
    return runs


def _beside(edit, inside: list[float], device: str):
    """The edit of a copy that nothing is drawn from, its seconds added up."""
    clock = common.clock(device)

    def beside(logits, rows):
        copy = logits.clone()
        common.synchronize(device)
        start = clock()
        edit(copy, rows)
        common.synchronize(device)
        inside[0] += clock() - start
        return logits

    return beside


def _distinct(drawn: list) -> int:
    """Tokens that were computed: samples that agree so far are one row."""
    total = 0
    for _, responses in drawn:
        whole = [tuple(response.token_ids) for response in responses]
        total += len({one[: length + 1] for one in whole for length in range(len(one))})
    return total


if __name__ == "__main__":
    common.run(main, child)
