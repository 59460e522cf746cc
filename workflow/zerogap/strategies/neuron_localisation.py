"""Find the shortcut neurons of a contaminated model (Zhu et al., ACL 2025).

Every neuron of every layer but the last gets two scores:

- comparative: how differently the contaminated and the clean model activate it on the contaminated
  model's own greedy responses (:func:`comparative_scores`);
- causal: what patching it with the base model's activations does to the two models' accuracy. That
  takes two greedy decodes per patch, so adjacent neurons are patched and scored together as a
  :class:`NeuronGroup` (:func:`causal_scores`).

The neurons with the largest sum are selected (:func:`select_neurons`). Groups are independent of
each other: any subset can be scored by any process, and their scores put together afterwards.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from transformers import PreTrainedModel

from zerogap.engine.decoder import Decoder
from zerogap.engine.patched_decoder import KeptPrefix, PatchedDecoder, recorded_activations


class NeuronGroup(NamedTuple):
    """Adjacent neurons of one layer, `start` to `stop` - 1, that are scored together."""

    layer: int
    start: int
    stop: int


class GreedyResponse(NamedTuple):
    """Token ids of a prompt and of the greedy response that follows it."""

    prompt: list[int]
    response: list[int]


class Accuracies(NamedTuple):
    """The greedy accuracy of one model.

    Attributes:
        unpatched: of the model as it is.
        patched: of the model with one group patched, for every group.
    """

    unpatched: float
    patched: Mapping[NeuronGroup, float]


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


@torch.inference_mode()
def comparative_scores(
    contaminated: PreTrainedModel, clean: PreTrainedModel, responses: list[GreedyResponse]
) -> list[np.ndarray]:
    """Return how far the activations of every neuron are apart in the two models.

    Both models read the same text, prompt and response (teacher forcing). The root mean square of
    the difference is taken over the response's tokens.

    Args:
        contaminated: the model whose shortcut neurons are searched.
        clean: the clean model.
        responses: the contaminated model's own greedy responses.

    Returns:
        One array (width,) per layer.
    """
    squares: list[Tensor] = []
    for response in responses:
        activations = [_response_activations(net, *response) for net in (contaminated, clean)]
        differences = [((a - b) ** 2).sum(0) for a, b in zip(*activations, strict=True)]
        totals = squares or [torch.zeros_like(new) for new in differences]
        squares = [total + new for total, new in zip(totals, differences, strict=True)]
    num_tokens = sum(len(tokens) for _, tokens in responses)
    return [(total / num_tokens).sqrt().numpy() for total in squares]


def patched_accuracies(
    model: Decoder,
    base: KeptPrefix,
    groups: Iterable[NeuronGroup],
    accuracy: Callable[[Decoder], float],
) -> Iterator[tuple[NeuronGroup, float]]:
    """Patch one group of a model after the other with the base model's activations.

    Args:
        model: the contaminated or the clean model.
        base: the base model.
        groups: the groups to patch, all of them or some.
        accuracy: the fraction of questions that the decoder's greedy responses solve.

    Yields:
        Each group with the patched model's accuracy, as soon as it is known, so that a caller can
        store it.
    """
    patched = PatchedDecoder(model, base.decoder, {}, prefix=base)
    try:
        for group in groups:
            patched.patch({group.layer: torch.arange(group.start, group.stop)})
            yield group, accuracy(patched)
    finally:
        patched.release()


def causal_scores(contaminated: Accuracies, clean: Accuracies) -> dict[NeuronGroup, float]:
    """Score neuron groups by what patching them does to the two models' accuracy.

    A shortcut neuron is one whose patch costs the contaminated model M_co accuracy and leaves the
    clean model M_cl as it is:

        [a(M_co) − a_patched(M_co)] + [1 − (a(M_cl) − a_patched(M_cl))]

    Args:
        contaminated: accuracies of the contaminated model.
        clean: accuracies of the clean model, for the same groups.
    """
    scores = {}
    for group, accuracy in contaminated.patched.items():
        harm = contaminated.unpatched - accuracy
        collateral = clean.unpatched - clean.patched[group]
        scores[group] = harm + 1 - collateral
    return scores


def score_neurons(
    comparative: list[np.ndarray], causal: Mapping[NeuronGroup, float]
) -> pd.DataFrame:
    """Return the `neurons` table (:mod:`zerogap.io.parquet`), with no neuron selected.

    Args:
        comparative: one array (width,) per layer.
        causal: the score of every group whose neurons are to be in the table.
    """
    rows = [
        (group.layer, neuron, comparative[group.layer][neuron], score)
        for group, score in causal.items()
        for neuron in range(group.start, group.stop)
    ]
    table = pd.DataFrame(rows, columns=["layer", "neuron", "comparative", "causal"])
    table["score"] = table.comparative + table.causal
    table["selected"] = False
    return table


def select_neurons(table: pd.DataFrame, num_neurons: int, fraction: float) -> pd.DataFrame:
    """Select the neurons with the largest sum of comparative and causal score.

    Of several neurons with the same score, those of the first layers are selected first.

    Args:
        table: the scored neurons of all groups.
        num_neurons: neurons of all layers, the last layer included.
        fraction: neurons to select, as a fraction of `num_neurons`: the authors' 5,000 neurons are
            1.4 % of Llama-2-7B's 352,256.

    Returns:
        The table in the order of layers and neurons, with the column `selected`.
    """
    table = table.sort_values(["layer", "neuron"], ignore_index=True)
    ranked = table.score.sort_values(ascending=False, kind="stable")
    table["selected"] = table.index.isin(ranked.index[: round(fraction * num_neurons)])
    return table


def _response_activations(
    model: PreTrainedModel, prompt: list[int], response: list[int]
) -> list[Tensor]:
    """Return each layer's activations (tokens, width) on the response, in float64 on the CPU."""
    inputs = torch.tensor([prompt + response], device=model.device)
    with recorded_activations(model) as activations:
        model.base_model(inputs, use_cache=False)  # no logits are needed
    return [layer[0, len(prompt) :].double().cpu() for layer in activations]
