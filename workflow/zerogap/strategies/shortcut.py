"""Shortcut neuron patching (Zhu et al., ACL 2025): run with the base model's shortcut neurons.

A neuron is one coordinate of a feed-forward block's inner vector, the input of its down
projection. At every position of every forward pass the selected neurons of the contaminated model
are overwritten with the activations that the base model has on the same tokens. Both models decode
in lock-step, each with its own cache; the base model only up to the last patched layer.

Which neurons are selected is decided beforehand (:mod:`zerogap.strategies.neuron_localisation`).
The method's paper and its code differ in details; docs/choices.md lists what is done here.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers import AutoModelForCausalLM, PreTrainedModel

from zerogap.engine import loading
from zerogap.engine.decoder import Capacity, Decoder
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder, passes_end_before
from zerogap.errors import InputError
from zerogap.families.structure import down_projections
from zerogap.io import parquet
from zerogap.strategies.base import Context, Intervention

Neurons = dict[int, Tensor]  # layer → indices of neurons in it


@dataclass(frozen=True)
class Shortcut:
    """Patch the neurons selected in `context.neurons` with those of `context.base_model`."""

    def prepare(self, context: Context) -> Intervention:
        """Return the patch. The base model is loaded when the contaminated model's decoder exists.

        Raises:
            InputError: the context has no base model or no neurons file.
        """
        if context.base_model is None or context.neurons is None:
            raise InputError(
                "Shortcut: it needs the base model's folder and a neurons file; set "
                "needs_base_model: true in the configuration, or pass base_model and neurons to "
                "zerogap.sample"
            )
        folder, neurons = context.base_model, selected_neurons(context.neurons)

        def wrap_decoder(contaminated: Decoder) -> PatchedDecoder:
            model = AutoModelForCausalLM.from_pretrained(
                folder, dtype=contaminated.model.dtype, use_safetensors=True
            )
            base = loading.decoder(model.to(contaminated.device), with_logits=False)
            return PatchedDecoder(contaminated, base, neurons)

        return Intervention(wrap_decoder=wrap_decoder)


class PrefixKeepingDecoder(Decoder, Protocol):
    """A decoder that can start over behind the prefix that it has computed."""

    def drop_rows(self) -> None:
        """Drop all rows and keep the shared prefix."""


class KeptPrefix:
    """The base model's pass over the shared prefix, computed once for any number of patches.

    The base model is never patched itself, so its keys, values and neurons on the prefix are the
    same for every patch. The neurons of all layers are kept on the host.

    Args:
        decoder: the decoder of the base model.
    """

    def __init__(self, decoder: PrefixKeepingDecoder) -> None:
        self.decoder = decoder
        self._token_ids: list[int] | None = None
        self._activations: list[Tensor] = []

    def prefill(self, token_ids: list[int]) -> None:
        """Drop all rows; compute the prefix unless it is the one that is in place."""
        if token_ids == self._token_ids:
            self.decoder.drop_rows()
            return
        self._token_ids = None
        self.decoder.reserve(None)
        with recorded_activations(self.decoder.model) as activations:
            self.decoder.prefill_prefix(token_ids)
            self._activations = [layer.cpu() for layer in activations]
        self._token_ids = list(token_ids)

    def activations(self, layer: int, indices: Tensor) -> Tensor:
        """Return neurons (1, P, n) of one layer on the prefix, on the device of `indices`."""
        if not self._token_ids:  # nothing was computed
            return torch.empty(0)
        return self._activations[layer][..., indices.cpu()].to(indices.device)


class PatchedDecoder:
    """A model that decodes with some neurons of a base model; a `Decoder` like the two it drives.

    Args:
        patched: the decoder of the model whose neurons are overwritten and whose logits are used.
        base: the decoder of the base model.
        neurons: layer → indices of the neurons to overwrite.
        prefix: the pass of the same base model over the shared prefix, if several patches share it.
    """

    preallocates = False

    def __init__(
        self,
        patched: Decoder,
        base: Decoder,
        neurons: Neurons,
        prefix: KeptPrefix | None = None,
    ) -> None:
        self.model: PreTrainedModel = patched.model
        self.device = patched.device
        self.single_prompt_only = patched.single_prompt_only or base.single_prompt_only
        self._patched, self._base, self._prefix = patched, base, prefix
        self._neurons = {layer: indices.to(self.device) for layer, indices in neurons.items()}
        self._activations: dict[int, Tensor] = {}  # of these neurons, in the latest forward pass
        self._handles: list[RemovableHandle] = []
        patched_layers, base_layers = down_projections(patched.model), down_projections(base.model)
        for layer in self._neurons:
            self._patch(layer, patched_layers[layer], base_layers[layer])
        ends_early = (
            isinstance(base, SharedPromptDecoder) and not base.with_logits and self._neurons
        )
        self._last_layer = base_layers[max(self._neurons)] if ends_early else None

    @property
    def prefers_sorted_rows(self) -> bool:
        """Whether steps of the patched model are faster if similar rows are neighbours."""
        return self._patched.prefers_sorted_rows

    def reserve(self, capacity: Capacity | None) -> None:
        """Reserve nothing: the hooks run in Python at every step, so no step can be recorded."""
        if self._prefix is None:
            self._base.reserve(None)
        self._patched.reserve(None)

    def prefill_prefix(self, token_ids: list[int]) -> None:
        """Compute the shared prefix in both models, the base model first."""
        if self._prefix is None:
            with self._only_patched_layers():
                self._base.prefill_prefix(token_ids)
        else:
            self._prefix.prefill(token_ids)
            for layer, indices in self._neurons.items():
                self._activations[layer] = self._prefix.activations(layer, indices)
        self._patched.prefill_prefix(token_ids)

    def prefill_prompts(self, prompts: list[list[int]]) -> Tensor:
        """Prefill prompts in both models; the patched model's logits."""
        with self._only_patched_layers():
            self._base.prefill_prompts(prompts)
        return self._patched.prefill_prompts(prompts)

    def step(self, tokens: Tensor) -> Tensor:
        """Feed one token (R,) per row to both models; the patched model's logits (R, V)."""
        with self._only_patched_layers():
            self._base.step(tokens)
        return self._patched.step(tokens)

    def reorder(self, rows: np.ndarray) -> None:
        """Continue with the given rows in both models."""
        self._base.reorder(rows)
        self._patched.reorder(rows)

    def kv_bytes(self) -> int:
        """Bytes of the prefix's keys and values in both models."""
        return self._base.kv_bytes() + self._patched.kv_bytes()

    def release(self) -> None:
        """Remove the hooks from both models, so that they can be used unpatched."""
        for handle in self._handles:
            handle.remove()

    def _only_patched_layers(self) -> contextlib.AbstractContextManager[None]:
        """End the base model's passes once the last patched layer's neurons are known."""
        if self._last_layer is None:
            return contextlib.nullcontext()
        return passes_end_before(self._last_layer)

    def _patch(self, layer: int, patched: nn.Module, base: nn.Module) -> None:
        """Overwrite neurons of one layer with those that the base model has just computed."""
        indices = self._neurons[layer]

        def remember(_: nn.Module, inputs: tuple[Tensor]) -> None:
            self._activations[layer] = inputs[0][..., indices]

        def overwrite(_: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
            return (inputs[0].index_copy(-1, indices, self._activations[layer]),)

        self._handles += [
            base.register_forward_pre_hook(remember),
            patched.register_forward_pre_hook(overwrite),
        ]


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


def selected_neurons(path: Path) -> Neurons:
    """Return the neurons that a `neurons` file selects, by layer."""
    table = parquet.read(path, "neurons")
    selected = table[table.selected]
    return {
        layer: torch.tensor(selected.neuron[selected.layer == layer].tolist())
        for layer in sorted(set(selected.layer.tolist()))
    }
