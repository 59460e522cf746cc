"""What each strategy costs: its tokens a second over Identity's, in the same process.

python benchmarks/strategies.py [--model llama2]

Every strategy decodes a fixed number of tokens, so that it is its work at a step that is compared
and not the length of what it makes the model say. RailCap runs along greedy trajectories, as in
earnest; Shortcut decodes two models by its nature, with a donor of the same shape.
"""

import json
import statistics
import time

import common


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--model", default="llama2")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    found = common.in_child(
        __file__,
        model=args.model, dtype=args.dtype, device=common.default_device(), rows=args.rows,
        questions=args.questions, tokens=args.tokens, repeats=args.repeats,
    )  # fmt: skip
    rows = []
    for name, speeds in found.items():
        ratios = sorted(own / plain for own, plain in zip(speeds, found["Identity"], strict=True))
        rows.append(
            [
                name,
                f"{statistics.median(speeds):,.0f}",
                f"{statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})",
            ]
        )
    common.publish(
        f"Strategies on {args.model}, {args.dtype}, {args.rows} samples together",
        ["strategy", "tokens/s (median)", "share of Identity's"],
        rows,
        args.output,
    )


def child(arguments: dict) -> None:
    import torch
    from sampler import _Endless

    import zerogap
    from zerogap.decoding import models
    from zerogap.decoding.sampler import Sampling, greedy, sample
    from zerogap.decoding.shortcut import PatchedModel
    from zerogap.decoding.strategy import Context

    made = (arguments["model"], arguments["dtype"], arguments["device"])
    words, prompts = _Endless(common.tokenizer()), common.prompts(made[0], arguments["questions"])
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
    speeds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(arguments["repeats"]):
        for name, edit in contenders.items():
            patched = PatchedModel(decoder, donor, neurons) if name == "Shortcut" else None
            start = time.perf_counter()
            drawn = list(sample(patched or decoder, prompts, words, sampling, edit))
            common.synchronize(arguments["device"])
            seconds = time.perf_counter() - start
            speeds[name].append(_distinct(drawn) / seconds)
            if patched:
                patched.release()
    print(json.dumps(speeds))


def _distinct(drawn: list) -> int:
    """Tokens that were computed: samples that agree so far are one row."""
    total = 0
    for _, responses in drawn:
        whole = [tuple(response.token_ids) for response in responses]
        total += len({one[: length + 1] for one in whole for length in range(len(one))})
    return total


if __name__ == "__main__":
    if (given := common.child_arguments()) is not None:
        child(given)
    else:
        main()
