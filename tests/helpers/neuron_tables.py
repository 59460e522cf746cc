"""`neurons` files for tests of the Shortcut strategy."""

from pathlib import Path

import pandas as pd

from zerogap.io import parquet


def write_neurons(path: Path, layer: object, neuron: object, selected: object = True) -> Path:
    """Write a table of these neurons, with any scores; the values are those of its columns."""
    table = pd.DataFrame(
        {
            "layer": layer, "neuron": neuron, "comparative": 0.1, "causal": 1.0, "score": 1.1,
            "selected": selected,
        }
    )  # fmt: skip
    parquet.write(path, table, "neurons", {})
    return path
