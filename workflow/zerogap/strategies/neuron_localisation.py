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

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from zerogap.engine.decoder import Decoder
from zerogap.families.structure import down_projections
from zerogap.strategies.shortcut import Neurons, PatchedDecoder


class NeuronGroup(NamedTuple):
    """Adjacent neurons of one layer, `start` to `stop` - 1, that are scored together."""

    layer: int
    start: int
    stop: int

    def neurons(self) -> Neurons:
        """Return the group's neurons as a patch."""
        return {self.layer: torch.arange(self.start, self.stop)}


class GreedyResponse(NamedTuple):
    """Token ids of a prompt and of the greedy response that follows it."""

    prompt: list[int]
    response: list[int]


class Models(NamedTuple):
    """The decoders that the causal scores need."""

    contaminated: Decoder
    clean: Decoder
    base: Decoder


def neuron_groups(layer_widths: list[int], group_size: int) -> list[NeuronGroup]:
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
    num_tokens = 0
    for prompt, response in responses:
        activations = [
            _response_activations(model, prompt, response) for model in (contaminated, clean)
        ]
        differences = [((a - b) ** 2).sum(0) for a, b in zip(*activations, strict=True)]
        if squares:
            squares = [total + new for total, new in zip(squares, differences, strict=True)]
        else:
            squares = differences
        num_tokens += len(response)
    return [(total / num_tokens).sqrt().numpy() for total in squares]


def causal_scores(
    models: Models, groups: Iterable[NeuronGroup], accuracy: Callable[[Decoder], float]
) -> Iterator[tuple[NeuronGroup, float]]:
    """Score neuron groups by what patching them does to the two models' accuracy.

    A shortcut neuron is one whose patch costs the contaminated model M_co accuracy and leaves the
    clean model M_cl as it is:

        [a(M_co) − a_patched(M_co)] + [1 − (a(M_cl) − a_patched(M_cl))]

    Args:
        models: the decoders; both models are patched with the base model's activations.
        groups: the groups to score, all of :func:`neuron_groups` or some of them.
        accuracy: the fraction of questions that the decoder's greedy responses solve.

    Yields:
        Each group with its score as soon as it is known, so that a caller can store it.
    """
    contaminated, clean = accuracy(models.contaminated), accuracy(models.clean)
    for group in groups:
        harm = contaminated - _patched_accuracy(models.contaminated, models.base, group, accuracy)
        collateral = clean - _patched_accuracy(models.clean, models.base, group, accuracy)
        yield group, harm + 1 - collateral


def select_neurons(
    comparative: list[np.ndarray], causal: Mapping[NeuronGroup, float], fraction: float
) -> pd.DataFrame:
    """Select the neurons with the largest sum of comparative and causal score.

    Args:
        comparative: one array (width,) per layer, the last layer included.
        causal: the score of every group.
        fraction: neurons to select, as a fraction of all layers' neurons, the last layer included:
            the authors' 5,000 neurons are 1.4 % of Llama-2-7B's 352,256.

    Returns:
        The `neurons` table (:mod:`zerogap.io.parquet`), one row per scored neuron.
    """
    rows = [
        (group.layer, neuron, comparative[group.layer][neuron], score)
        for group, score in causal.items()
        for neuron in range(group.start, group.stop)
    ]
    table = pd.DataFrame(rows, columns=["layer", "neuron", "comparative", "causal"])
    table["score"] = table.comparative + table.causal
    num_selected = round(fraction * sum(len(layer) for layer in comparative))
    ranked = table.score.sort_values(ascending=False, kind="stable")
    table["selected"] = table.index.isin(ranked.index[:num_selected])
    return table


@contextlib.contextmanager
def recorded_activations(model: PreTrainedModel) -> Iterator[list[Tensor]]:
    """Record the neurons of a model's forward passes.

    Yields:
        A list that holds each layer's activations (…, width) of the latest forward pass.
    """
    layers = down_projections(model)
    activations = [torch.empty(0)] * len(layers)

    def hook(layer: int) -> Callable[[nn.Module, tuple[Tensor]], None]:
        def record(_: nn.Module, inputs: tuple[Tensor]) -> None:
            activations[layer] = inputs[0]

        return record

    handles = [module.register_forward_pre_hook(hook(layer)) for layer, module in enumerate(layers)]
    try:
        yield activations
    finally:
        for handle in handles:
            handle.remove()


def _response_activations(
    model: PreTrainedModel, prompt: list[int], response: list[int]
) -> list[Tensor]:
    """Return each layer's activations (tokens, width) on the response, in float64 on the CPU."""
    inputs = torch.tensor([prompt + response], device=model.device)
    with recorded_activations(model) as activations:
        model(inputs)
    return [layer[0, len(prompt) :].double().cpu() for layer in activations]


def _patched_accuracy(
    model: Decoder, base: Decoder, group: NeuronGroup, accuracy: Callable[[Decoder], float]
) -> float:
    patched = PatchedDecoder(model, base, group.neurons())
    try:
        return accuracy(patched)
    finally:
        patched.release()
