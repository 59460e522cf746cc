"""Shortcut neuron patching (Zhu et al., ACL 2025): run with the base model's shortcut neurons.

At every position of every forward pass the selected neurons of the contaminated model are
overwritten with the activations that the base model has on the same tokens
(:mod:`zerogap.engine.patched_decoder`).

Which neurons are selected is decided beforehand (:mod:`zerogap.sampling.localisation`).
The method's paper and its code differ in details; docs/choices.md lists what is done here.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.strategies.base import Context, Intervention

if TYPE_CHECKING:  # a configuration is checked without torch
    from zerogap.engine.decoder import Decoder
    from zerogap.engine.patched_decoder import Neurons, PatchedDecoder


@dataclass(frozen=True)
class Shortcut:
    """Patch the neurons selected in `context.neurons` with those of `context.base_model`."""

    def prepare(self, context: Context) -> Intervention:
        """Return the patch. The base model is loaded when the contaminated model's decoder exists.

        Raises:
            InputError: the context has no base model or no neurons file, or the file selects no
                neurons. Wrapping raises it if it selects neurons that a model does not have.
        """
        if context.base_model is None or context.neurons is None:
            raise InputError(
                "Shortcut: it needs the base model's folder and a neurons file; set "
                "needs_base_model: true in the configuration, or pass base_model and neurons to "
                "zerogap.sample"
            )
        folder, file = context.base_model, context.neurons
        neurons = selected_neurons(file)

        def wrap_decoder(contaminated: "Decoder") -> "PatchedDecoder":
            from zerogap.engine import loading
            from zerogap.engine.patched_decoder import PatchedDecoder
            from zerogap.families.structure import num_neurons

            contaminated.reserve(None)  # room for the base model
            model = loading.read_model(folder, contaminated.model.dtype)
            for net in (contaminated.model, model):
                widths = num_neurons(net)
                for layer, indices in neurons.items():
                    largest = int(indices.max())
                    if layer >= len(widths) or largest >= widths[layer]:
                        raise InputError(
                            f"{file}: selects neuron {largest} of layer {layer}, which "
                            f"{net.name_or_path or 'the model'} does not have; give the neurons "
                            "that were localised for this model"
                        )
            base = loading.decoder(model.to(contaminated.device), with_logits=False)
            return PatchedDecoder(contaminated, base, neurons)

        return Intervention(wrap_decoder=wrap_decoder)


def selected_neurons(path: Path) -> "Neurons":
    """Return the neurons that a `neurons` file selects, by layer.

    Raises:
        InputError: it selects none, as the file of a shard.
    """
    import torch

    table = parquet.read(path, "neurons")
    selected = table[table.selected]
    if selected.empty:
        raise InputError(
            f"{path}: selects no neurons, so that Shortcut would change nothing; give the merged "
            "file and not that of a shard, or raise neuron_localisation.fraction"
        )
    return {
        layer: torch.tensor(selected.neuron[selected.layer == layer].tolist())
        for layer in selected.layer.sort_values().unique().tolist()
    }
