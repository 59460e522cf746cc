"""Groups of neurons that are scored together."""

from collections.abc import Sequence
from typing import NamedTuple


class NeuronGroup(NamedTuple):
    """Adjacent neurons of one layer, `start` to `stop` - 1, that are scored together."""

    layer: int
    start: int
    stop: int


def neuron_groups(layer_widths: Sequence[int], group_size: int) -> list[NeuronGroup]:
    """Divide the neurons of all layers but the last into groups.

    Args:
        layer_widths: number of neurons per layer.
        group_size: neurons per group; the last group of a layer may have fewer.
    """
    return [
        NeuronGroup(layer, start, min(start + group_size, width))
        for layer, width in enumerate(layer_widths[:-1])
        for start in range(0, width, group_size)
    ]


def groups_of_shard(
    groups: Sequence[NeuronGroup], shard: int, num_shards: int
) -> Sequence[NeuronGroup]:
    """Return every `num_shards`-th group, starting from number `shard` (counted from 0)."""
    return groups[shard::num_shards]
