"""`neurons` tables for tests of the Shortcut strategy."""

from pathlib import Path

import pandas as pd

from zerogap.io import parquet


def neurons_table(layer: object, neuron: object, selected: object = True) -> pd.DataFrame:
    """These neurons with any scores; the values are those of its columns."""
    table = pd.DataFrame({"layer": layer, "neuron": neuron})
    return table.assign(comparative=0.1, causal=1.0, score=1.1, selected=selected)


def write_neurons(path: Path, layer: object, neuron: object, selected: object = True) -> Path:
    """Write such a table."""
    parquet.write(path, neurons_table(layer, neuron, selected), "neurons", {})
    return path
