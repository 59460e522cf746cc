"""How stable is the choice of shortcut neurons, as a function of the questions it is based on?

python benchmarks/neuron_stability.py --contaminated results/quick/llama2/gsm8k
    --clean results/quick/llama2/clean_gsm8k --base workflow/resources/bases/llama2
    --data results/quick/data/gsm8k
    --scale profiles/quick/quick.yaml

Patches every neuron group of a finished run's models and notes which of all leaked questions are
solved. Then neurons are selected twice, from two disjoint random subsets of these questions, as two
localisations with different seeds would. The overlap is the share of the selected neurons that both
have. The comparative score, which always uses all leaked questions, is the same in both.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from zerogap.config import load
from zerogap.engine import loading
from zerogap.engine.patched_decoder import KeptPrefix
from zerogap.io import parquet
from zerogap.pipeline.parameters import job_parameters
from zerogap.sampling.localisation import GreedyPasses
from zerogap.sampling.responses import JobInputs
from zerogap.strategies.neuron_localisation import (
    Accuracies,
    NeuronGroup,
    causal_scores,
    patched_accuracies,
    score_neurons,
    select_neurons,
)

SIZES = (4, 8, 12, 16, 20, 25, 50, 100)
REPEATS = 200

Solved = dict[NeuronGroup | None, NDArray[np.bool_]]  # group, None if unpatched: (questions,)


def solved_questions(args: argparse.Namespace, parameters: dict[str, Any]) -> list[Solved]:
    """Which leaked questions the contaminated and the clean model solve, patched and unpatched."""
    settings = {key: parameters[key] for key in ("sampling", "benchmark")}
    inputs = JobInputs.read(
        args.contaminated / "model",
        args.data / "questions.parquet",
        args.data / "exemplars.json",
        **settings,
        only_leaked=True,
    )
    passes = GreedyPasses(inputs, **settings, num_questions=len(inputs.prompts), seed=0)
    groups = neuron_groups_of(args.contaminated, parameters["neuron_localisation"]["group_size"])
    dtype = parameters["sampling"]["dtype"]
    base = KeptPrefix(loading.decoder(loading.load(args.base, dtype), with_logits=False))
    solved: list[Solved] = []
    for folder in (args.contaminated, args.clean):
        decoder = loading.decoder(loading.load(folder / "model", dtype))
        marks: Solved = {None: np.array(passes.solved(decoder))}
        for group, patched in patched_accuracies(decoder, base, groups, passes.solved):
            marks[group] = np.array(patched)
        solved.append(marks)
    return solved


def neuron_groups_of(contaminated: Path, size: int) -> list[NeuronGroup]:
    """The groups of a finished localisation, whose table has every candidate neuron."""
    neurons = parquet.read(contaminated / "neurons.parquet", "neurons")
    return [
        NeuronGroup(int(layer), start, min(start + size, width))
        for layer, width in neurons.groupby("layer").size().items()
        for start in range(0, width, size)
    ]


def select(
    solved: list[Solved],
    questions: NDArray[np.int64],
    comparative: list[NDArray[np.float64]],
    num_selected: int,
) -> set[tuple[int, int]]:
    """The neurons selected from some of the questions."""
    accuracies = [
        Accuracies(
            float(marks[None][questions].mean()),
            {group: float(m[questions].mean()) for group, m in marks.items() if group is not None},
        )
        for marks in solved
    ]
    table = score_neurons(comparative, causal_scores(*accuracies))
    table = select_neurons(table, num_selected, 1.0)
    return set(table.loc[table.selected, ["layer", "neuron"]].itertuples(index=False, name=None))


def measure(
    solved: list[Solved], comparative: list[NDArray[np.float64]], num_selected: int
) -> pd.DataFrame:
    """Mean overlap of two selections from disjoint subsets, by size of the subsets."""
    num_questions = len(solved[0][None])
    rng = np.random.default_rng(0)
    rows = []
    for size in (size for size in SIZES if 2 * size <= num_questions):
        overlaps = []
        for _ in range(REPEATS):
            drawn = rng.permutation(num_questions)[: 2 * size]
            chosen = [
                select(solved, part, comparative, num_selected) for part in np.split(drawn, 2)
            ]
            overlaps.append(len(chosen[0] & chosen[1]) / num_selected)
        rows.append((size, np.mean(overlaps), *np.quantile(overlaps, [0.1, 0.9])))
    return pd.DataFrame(rows, columns=["questions", "overlap", "low", "high"])


def main() -> None:
    """Measure the overlap and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for option in ("contaminated", "clean", "base", "data", "scale"):
        parser.add_argument(f"--{option}", type=Path, required=True)
    args = parser.parse_args()
    place = {"model": args.contaminated.parent.name, "variant": args.contaminated.name}
    config = load(["config.yaml", args.scale])
    parameters = json.loads(job_parameters(config, "localise_neurons", place))
    neurons = parquet.read(args.contaminated / "neurons.parquet", "neurons")
    comparative = [rows.comparative.to_numpy() for _, rows in neurons.groupby("layer")]
    solved = solved_questions(args, parameters)
    rows = measure(solved, comparative, int(neurons.selected.sum()))
    print("| questions | overlap of two selections | 10 % to 90 % |\n| ---: | ---: | --- |")
    for row in rows.itertuples():
        print(f"| {row.questions} | {row.overlap:.0%} | {row.low:.0%} to {row.high:.0%} |")


if __name__ == "__main__":
    main()
