"""Groups of neurons that are scored together, and how much work their causal scores are.

This module loads no torch, so that a plan can count the work of a run.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple


class NeuronGroup(NamedTuple):
    """Adjacent neurons of one layer, `start` to `stop` - 1, that are scored together."""

    layer: int
    start: int
    stop: int


class CausalWork(NamedTuple):
    """The greedy passes that the causal scores of one shard take.

    Attributes:
        num_groups: groups that the shard scores.
        num_questions: questions that every pass decodes.
        unpatched_passes: passes of one model: one for each of contaminated and clean model.
        patched_passes: passes of one of these models and the base model in lock-step: two per
            group. The base model's few-shot prefix is computed once per shard.
    """

    num_groups: int
    num_questions: int
    unpatched_passes: int
    patched_passes: int


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


def causal_work(
    layer_widths: Sequence[int],
    *,
    group_size: int,
    num_questions: int,
    num_leaked: int,
    num_shards: int = 1,
) -> CausalWork:
    """Return the work of the largest shard.

    Args:
        layer_widths: number of neurons per layer.
        group_size: neurons per group.
        num_questions: leaked questions to use, at most.
        num_leaked: leaked questions that there are.
        num_shards: jobs that share the groups.
    """
    num_groups = math.ceil(len(neuron_groups(layer_widths, group_size)) / num_shards)
    return CausalWork(num_groups, min(num_questions, num_leaked), 2, 2 * num_groups)
