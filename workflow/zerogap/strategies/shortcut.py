"""Shortcut neuron patching (Zhu et al., ACL 2025): borrow the base model's shortcut neurons.

A neuron is one coordinate of a feed-forward block's inner vector, the input of its down
projection. At every position of every forward pass the selected neurons of the contaminated model
take the activations that the donor (the base model) has on the same tokens; donor and patched
model decode in lock-step, each with its own cache.

Which neurons: `comparative + causal` score, the best share of all but the last layer's
(:func:`select`). Paper and code of the method differ in details; docs/choices.md lists our choice.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, PreTrainedModel

from zerogap.engine import loading
from zerogap.engine.decoder import Capacity
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
from zerogap.families.structure import down_projections
from zerogap.io import parquet
from zerogap.strategies.base import Context, Intervention


@dataclass(frozen=True)
class Shortcut:
    """Patch the neurons selected in `context.neurons` with those of `context.donor`."""

    def prepare(self, context: Context) -> Intervention:
        """The patch; the donor is loaded when the contaminated model is there."""
        neurons = selected_neurons(context.neurons)

        def wrap(patched: SharedPromptDecoder) -> PatchedModel:
            donor = AutoModelForCausalLM.from_pretrained(context.donor, dtype=patched.model.dtype)
            lender = loading.decoder(donor.to(patched.device), with_logits=False)
            return PatchedModel(patched, lender, neurons)

        return Intervention(wrap=wrap)


class PatchedModel:
    """A contaminated model that borrows neurons from a donor; same calls as a `SharedPromptDecoder`.

    Args:
        neurons: layer → indices of the neurons to borrow.
    """

    preallocates = False

    def __init__(
        self, patched: SharedPromptDecoder, donor: SharedPromptDecoder, neurons: dict[int, Tensor]
    ) -> None:
        self.model, self.device, self.single_prompt_only = (
            patched.model,
            patched.device,
            patched.single_prompt_only,
        )
        self._patched = patched
        self._donor = donor
        self._handles = []
        ours, theirs = down_projections(patched.model), down_projections(donor.model)
        for layer, indices in neurons.items():
            self._borrow(ours[layer], theirs[layer], indices.to(self.device))

    def reserve(self, capacity: Capacity | None) -> None:
        """Nothing is reserved nor recorded: what is borrowed goes through Python at every step."""
        self._donor.reserve(None)
        self._patched.reserve(None)

    def prefill_prefix(self, token_ids: list[int]) -> None:
        self._donor.prefill_prefix(token_ids)
        self._patched.prefill_prefix(token_ids)

    def prefill_prompts(self, questions: list[list[int]]) -> Tensor:
        self._donor.prefill_prompts(questions)
        return self._patched.prefill_prompts(questions)

    def step(self, tokens: Tensor) -> Tensor:
        self._donor.step(tokens)
        return self._patched.step(tokens)

    def reorder(self, rows: np.ndarray) -> None:
        self._donor.reorder(rows)
        self._patched.reorder(rows)

    def kv_bytes(self) -> int:
        return self._donor.kv_bytes() + self._patched.kv_bytes()

    def release(self) -> None:
        """Take the hooks off both models again."""
        for handle in self._handles:
            handle.remove()

    def _borrow(self, ours: nn.Module, theirs: nn.Module, indices: Tensor) -> None:
        borrowed: list[Tensor] = []

        def record(_: nn.Module, inputs: tuple[Tensor]) -> None:
            borrowed[:] = [inputs[0][..., indices]]

        def overwrite(_: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
            return (inputs[0].index_copy(-1, indices, borrowed[0]),)

        self._handles += [
            theirs.register_forward_pre_hook(record),
            ours.register_forward_pre_hook(overwrite),
        ]


@contextlib.contextmanager
def recorded_neurons(model: PreTrainedModel) -> Iterator[list[Tensor]]:
    """While open, the list holds each layer's neurons (…, width) of the latest forward pass."""
    modules = down_projections(model)
    activations: list[Tensor] = [torch.empty(0)] * len(modules)

    def hook(layer: int) -> Callable:
        def record(_: nn.Module, inputs: tuple[Tensor]) -> None:
            activations[layer] = inputs[0]

        return record

    handles = [module.register_forward_pre_hook(hook(i)) for i, module in enumerate(modules)]
    try:
        yield activations
    finally:
        for handle in handles:
            handle.remove()


@torch.inference_mode()
def comparative_scores(
    contaminated: PreTrainedModel, clean: PreTrainedModel, texts: list[tuple[list[int], int]]
) -> list[np.ndarray]:
    """Root mean square difference of every neuron's activation between the two models.

    Args:
        texts: (token ids, number of prompt tokens): both models read the same text, the
            contaminated model's own greedy response; its tokens are what is compared.

    Returns:
        One array (width,) a layer.
    """
    squares: list[Tensor] = []
    count = 0
    for token_ids, prompt_length in texts:
        inputs = torch.tensor([token_ids])
        seen = []
        for model in (contaminated, clean):
            with recorded_neurons(model) as activations:
                model(inputs.to(model.device))
                seen.append([layer[0, prompt_length:].double().cpu() for layer in activations])
        different = [((a - b) ** 2).sum(0) for a, b in zip(*seen, strict=True)]
        squares = [a + b for a, b in zip(squares, different, strict=True)] if squares else different
        count += len(token_ids) - prompt_length
    return [(total / count).sqrt().numpy() for total in squares]


def groups(widths: list[int], group_size: int) -> list[tuple[int, range]]:
    """Adjacent neurons of one layer, the last layer left out: (layer, indices)."""
    return [
        (layer, range(start, min(start + group_size, width)))
        for layer, width in enumerate(widths[:-1])
        for start in range(0, width, group_size)
    ]


def causal_scores(
    solved: Callable[[str, dict[int, Tensor] | None], float], parts: list[tuple[int, range]]
) -> list[float]:
    """[a(M_con) − a_patched(M_con)] + [1 − (a(M_un) − a_patched(M_un))] of every group.

    Args:
        solved: ("contaminated" | "clean", neurons to borrow from the donor or None) → accuracy.
    """
    contaminated, clean = solved("contaminated", None), solved("clean", None)
    scores = []
    for layer, indices in parts:
        neurons = {layer: torch.tensor(list(indices))}
        harm = contaminated - solved("contaminated", neurons)
        collateral = clean - solved("clean", neurons)
        scores.append(harm + 1 - collateral)
    return scores


def select(
    comparative: list[np.ndarray],
    parts: list[tuple[int, range]],
    causal: list[float],
    share: float,
) -> pd.DataFrame:
    """The `neurons` table: comparative + causal, the best `share` of all layers' neurons selected.

    The share is of all neurons, as 5,000 are 1.4 % of Llama-2-7B's 352,256.
    """
    rows = [
        (layer, neuron, comparative[layer][neuron], score)
        for (layer, indices), score in zip(parts, causal, strict=True)
        for neuron in indices
    ]
    table = pd.DataFrame(rows, columns=["layer", "neuron", "comparative", "causal"])
    table["score"] = table.comparative + table.causal
    wanted = round(share * sum(len(layer) for layer in comparative))
    best = table.score.sort_values(ascending=False, kind="stable").index[:wanted]
    table["selected"] = table.index.isin(best)
    return table


def selected_neurons(path: Path) -> dict[int, Tensor]:
    """Layer → indices of the neurons that a `neurons` file selects."""
    table = parquet.read(path, "neurons")
    chosen = table[table.selected]
    return {
        int(layer): torch.tensor(part.neuron.to_numpy(copy=True), dtype=torch.long)
        for layer, part in chosen.groupby("layer")
    }
