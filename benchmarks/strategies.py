"""What each strategy costs at a step.

python benchmarks/strategies.py [--model llama2]

Every strategy decodes a fixed number of tokens, along greedy trajectories as in earnest. Samples
under a strategy part at other places than Identity's and so fill the batch otherwise: whole runs
cannot be compared for what the strategy itself costs. Its cost is the time spent in its edit of the
logits over all the rest of the same run. Shortcut decodes two models by its nature (a donor of the
same shape); there the runs are compared.
"""

import json
import statistics
import time

import common


def main() -> None:
    args = common.parser(__doc__, questions=20, tokens=64, rows=500, repeats=5).parse_args()
    found = common.in_child(
        __file__,
        model=args.model, dtype=args.dtype, device=common.default_device(), rows=args.rows,
        questions=args.questions, tokens=args.tokens, repeats=args.repeats,
    )  # fmt: skip
    rows = []
    for name, runs in found.items():
        costs = sorted(run["edit"] / (run["seconds"] - run["edit"]) for run in runs)
        cost = f"{statistics.median(costs):.1%} ({costs[0]:.1%} to {costs[-1]:.1%})"
        plain = zip(runs, found["Identity"], strict=True)
        ratio = statistics.median(one["speed"] / other["speed"] for one, other in plain)
        speed = statistics.median(run["speed"] for run in runs)
        rows.append([name, f"{speed:,.0f}", f"{ratio:.2f}", cost if any(costs) else "–"])
    common.publish(
        f"Strategies on {args.model}, {args.dtype}, {args.rows} samples together",
        ["strategy", "rows/s (median)", "of Identity's", "the edit over all else"],
        rows,
        args.output,
    )


def child(arguments: dict) -> None:
    import torch

    import zerogap
    from zerogap.decoding import models
    from zerogap.decoding.sampler import Sampling, greedy, sample
    from zerogap.decoding.shortcut import PatchedModel
    from zerogap.decoding.strategy import Context

    made = (arguments["model"], arguments["dtype"], arguments["device"])
    words, prompts = (
        common.Endless(common.tokenizer()),
        common.prompts(made[0], arguments["questions"]),
    )
    sampling = Sampling(
        temperature=0.7, max_new_tokens=arguments["tokens"], stop=[], samples=50,
        batch_rows=arguments["rows"],
    )  # fmt: skip
    decoder = models.decoder(common.model(*made))
    plain = Sampling(temperature=0, max_new_tokens=arguments["tokens"], stop=[])
    trajectories = greedy(decoder, prompts, words, plain)
    context = Context(
        [one.token_ids for one in trajectories], [one.entropy for one in trajectories]
    )
    donor = models.decoder(common.model(*made), with_logits=False)
    neurons = {0: torch.arange(7), 1: torch.arange(7)}
    contenders = {
        "Identity": None,
        "RailCap": zerogap.RailCap().prepare(context).edit,
        "LNE-blocking": zerogap.LNEBlocking().prepare(context).edit,
        "Shortcut": None,
    }
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in contenders}
    for _ in range(arguments["repeats"]):
        for name, edit in contenders.items():
            patched = PatchedModel(decoder, donor, neurons) if name == "Shortcut" else None
            inside = [0.0]
            start = time.perf_counter()
            timed = edit and _timed(edit, inside, arguments["device"])
            drawn = list(sample(patched or decoder, prompts, words, sampling, timed))
            common.synchronize(arguments["device"])
            seconds = time.perf_counter() - start
            speed = _distinct(drawn) / seconds
            runs[name].append({"speed": speed, "seconds": seconds, "edit": inside[0]})
            if patched:
                patched.release()
    print(json.dumps(runs))


def _timed(edit, inside: list[float], device: str):
    """The edit, its seconds added up."""

    def timed(logits, rows):
        common.synchronize(device)
        start = time.perf_counter()
        edited = edit(logits, rows)
        common.synchronize(device)
        inside[0] += time.perf_counter() - start
        return edited

    return timed


def _distinct(drawn: list) -> int:
    """Tokens that were computed: samples that agree so far are one row."""
    total = 0
    for _, responses in drawn:
        whole = [tuple(response.token_ids) for response in responses]
        total += len({one[: length + 1] for one in whole for length in range(len(one))})
    return total


if __name__ == "__main__":
    common.run(main, child)
