"""How many shortcut neurons do two localisations have in common?

python benchmarks/neuron_overlap.py results/quick/llama2/gsm8k/neurons.parquet
    results/quick_seed1/llama2/gsm8k/neurons.parquet

Prints the share of the first's selected neurons that the second selected as well, the share that
two random selections of these sizes have in common on average, and the numbers by layer.
"""

import argparse
from pathlib import Path

from zerogap.io import parquet


def main() -> None:
    """Read two `neurons` tables of the same architecture and compare them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    args = parser.parse_args()
    tables = [parquet.read(path, "neurons") for path in (args.first, args.second)]
    chosen = [table[table["selected"]] for table in tables]
    first, second = (set(zip(rows["layer"], rows["neuron"], strict=True)) for rows in chosen)
    chance = len(second) / len(tables[1])
    print(f"{len(first)} and {len(second)} of {len(tables[1])} neurons are selected")
    print(f"in both: {len(first & second) / len(first):.0%} of the first (by chance {chance:.0%})")
    for path, rows in zip((args.first, args.second), chosen, strict=True):
        print(f"{path}: by layer {rows['layer'].value_counts().sort_index().to_dict()}")


if __name__ == "__main__":
    main()
