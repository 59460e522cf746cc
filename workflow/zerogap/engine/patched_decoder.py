"""Decode with a model of which some neurons are overwritten by those of a base model.

A neuron is one coordinate of a feed-forward block's inner vector, the input of its down projection.
At every position of every forward pass the chosen neurons get the activations that the base model
has on the same tokens. Both models decode in lock-step, each with its own cache; the base model
only up to the last patched layer.
"""

import contextlib
import functools
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedModel

from zerogap.engine.decoder import Capacity, Decoder
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder, end_pass
from zerogap.families.structure import down_projections

Neurons = dict[int, Tensor]  # layer → indices of neurons in it


class PatchedDecoder:
    """A model that decodes with some neurons of a base model; a `Decoder` like the two it drives.

    On a GPU the steps of both models are captured, the patch included. A captured step reads and
    writes fixed addresses, so the base model's neurons in a step have a place that stays, and so
    have the indices of the neurons: other ones of the same layers are patched by the same captured
    steps.

    Args:
        patched: the decoder of the model whose neurons are overwritten and whose logits are used.
        base: the decoder of the base model.
        neurons: layer → indices of the neurons to overwrite.
    """

    def __init__(self, patched: Decoder, base: Decoder, neurons: Neurons) -> None:
        self.model: PreTrainedModel = patched.model
        self.device = patched.device
        self.single_prompt_only = patched.single_prompt_only or base.single_prompt_only
        self._patched, self._base = patched, base
        self._neurons: Neurons = {}
        self._activations: Neurons = {}  # of these neurons, in the latest pass over prompts
        self._step_activations: Neurons = {}  # in the latest step of a reserved batch
        self._capacity: Capacity | None = None
        self._handles: list[RemovableHandle] = []
        self.patch(neurons)

    def patch(self, neurons: Neurons) -> None:
        """Patch these neurons from now on, and no others."""
        if _sizes(neurons) == _sizes(self._neurons):
            for layer, indices in neurons.items():
                self._neurons[layer].copy_(indices)
            return
        self.release()
        self._neurons = {
            layer: indices.clone().to(self.device) for layer, indices in neurons.items()
        }
        self._activations = {}
        patched_layers = down_projections(self._patched.model)
        base_layers = down_projections(self._base.model)
        for layer, indices in self._neurons.items():
            self._add_hooks(layer, indices, patched_layers[layer], base_layers[layer])
        base = self._base
        if neurons and isinstance(base, SharedPromptDecoder) and not base.with_logits:
            # Nothing behind the last patched neurons is needed.
            self._handles.append(base_layers[max(neurons)].register_forward_pre_hook(end_pass))

    def release(self) -> None:
        """Remove the patch from both models, so that they can be used unpatched."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._neurons = {}
        self.reserve(None)  # steps may have been captured with other hooks

    @property
    def prefers_sorted_rows(self) -> bool:
        """Whether steps of the patched model are faster if similar rows are neighbours."""
        return self._patched.prefers_sorted_rows

    def reserve(self, capacity: Capacity | None) -> None:
        """Reserve in both models, and the place of the base model's neurons."""
        self._base.reserve(capacity)
        self._patched.reserve(capacity)
        if capacity == self._capacity:
            return
        self._capacity, self._step_activations = capacity, {}
        if capacity is not None:
            options = {"dtype": self.model.dtype, "device": self.device}
            self._step_activations = {
                layer: torch.zeros(capacity.max_rows, 1, len(indices), **options)
                for layer, indices in self._neurons.items()
            }

    def prefill_prefix(self, token_ids: list[int]) -> None:
        """Compute the shared prefix in both models, the base model first."""
        self._base.prefill_prefix(token_ids)
        self._patched.prefill_prefix(token_ids)

    def prefill_prompts(self, prompts: list[list[int]]) -> Tensor:
        """Prefill prompts in both models; the patched model's logits."""
        self._base.prefill_prompts(prompts)
        return self._patched.prefill_prompts(prompts)

    def step(self, tokens: Tensor) -> Tensor:
        """Feed one token (R,) per row to both models; the patched model's logits (R, V)."""
        self._base.step(tokens)
        return self._patched.step(tokens)

    def reorder(self, rows: np.ndarray) -> None:
        """Continue with the given rows in both models."""
        self._base.reorder(rows)
        self._patched.reorder(rows)

    def kv_bytes(self) -> int:
        """Bytes of the prefix's keys and values in both models."""
        return self._base.kv_bytes() + self._patched.kv_bytes()

    def _add_hooks(self, layer: int, indices: Tensor, patched: nn.Module, base: nn.Module) -> None:
        """Overwrite neurons of one layer with those that the base model has just computed."""

        def remember(_: nn.Module, inputs: tuple[Tensor]) -> None:
            activations = inputs[0][..., indices]
            kept = self._kept(activations.shape[1])
            if kept is self._activations:
                kept[layer] = activations
            else:
                kept[layer][: len(activations)] = activations

        def overwrite(_: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
            num_rows, num_tokens = inputs[0].shape[:2]
            activations = self._kept(num_tokens)[layer][:num_rows]
            return (inputs[0].index_copy(-1, indices, activations),)

        self._handles += [
            base.register_forward_pre_hook(remember),
            patched.register_forward_pre_hook(overwrite),
        ]

    def _kept(self, num_tokens: int) -> Neurons:
        """Where the base model's neurons (≥B, L, n) in a pass over so many tokens are kept."""
        is_in_place = num_tokens == 1 and self._step_activations
        return self._step_activations if is_in_place else self._activations


def _sizes(neurons: Neurons) -> dict[int, int]:
    """How many neurons of each layer."""
    return {layer: len(indices) for layer, indices in neurons.items()}


@contextlib.contextmanager
def recorded_activations(model: PreTrainedModel) -> Iterator[list[Tensor]]:
    """Record the neurons of a model's forward passes.

    Yields:
        A list that holds each layer's activations (…, width) of the latest forward pass.
    """
    layers = down_projections(model)
    activations = [torch.empty(0)] * len(layers)

    def record(layer: int, _: nn.Module, inputs: tuple[Tensor]) -> None:
        activations[layer] = inputs[0]

    handles = [
        module.register_forward_pre_hook(functools.partial(record, layer))
        for layer, module in enumerate(layers)
    ]
    try:
        yield activations
    finally:
        for handle in handles:
            handle.remove()
