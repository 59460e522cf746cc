"""The interface between the decoding loop and a model, and the values that cross it.

The loop (:mod:`zerogap.engine.sampler`) drives a :class:`Decoder`; it knows nothing about keys and
values. A decoder knows nothing about samples, draws or stop strings.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Prompt:
    """The complete prompt of one question, few-shot examples included, as token ids."""

    question_id: str
    token_ids: list[int]


@dataclass(frozen=True)
class Response:
    """One sampled or greedy response.

    Attributes:
        token_ids: the generated tokens, the end token included.
        finish_reason: "eos", "stop" or "length".
        entropy: the entropy (nats) of every step's distribution; greedy decoding only.
    """

    token_ids: list[int]
    finish_reason: str
    entropy: list[float] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class SamplingParams:
    """How responses are drawn.

    Attributes:
        num_samples: responses per prompt.
        temperature: divides the logits; 0 is greedy decoding.
        top_p: probability mass of the nucleus; 1 samples from the whole distribution.
        max_new_tokens: the longest response, in tokens.
        stop: strings that end a response.
        batch_size: samples decoded together; changes no draw. "auto": as many as fit in memory
            (:func:`zerogap.engine.sampler.auto_batch_size`).
        batch_invariant: decode one question at a time, so that even the rounding of the logits is
            independent of what else is in the batch.
        seed: seed of the random draws.
        stream: name of an independent random stream of that seed.
    """

    temperature: float
    max_new_tokens: int
    stop: list[str] = field(default_factory=list)
    num_samples: int = 1
    top_p: float = 1.0
    batch_size: int | Literal["auto"] = "auto"
    batch_invariant: bool = False
    seed: int = 0
    stream: str = "strategies"

    def resumed_batch_size(self, previous: int | None) -> int | None:
        """The batch size of an earlier attempt, if any, or this one if it is a smaller number."""
        if previous is None or self.batch_size == "auto":
            return previous
        return min(previous, self.batch_size)


@dataclass(frozen=True)
class Capacity:
    """The largest batch that a decoder has to hold.

    Attributes:
        max_rows: rows decoded in one step.
        samples_per_prompt: rows that one prompt can have.
        max_new_tokens: generated tokens per row.
        max_prompts: prompts in the batch at the same time. Storage grows if there are more.
        max_prompt_len: tokens of the longest prompt after the shared prefix.
    """

    max_rows: int
    samples_per_prompt: int
    max_new_tokens: int
    max_prompts: int
    max_prompt_len: int


@dataclass
class Rows:
    """The batch as a strategy sees it when it edits the logits of the next token.

    A row represents all samples of a question that have drawn the same tokens so far. The tensors
    are on the host wherever the model is: their content is known there before the device has
    computed the logits.

    Attributes:
        question: (R,) index of the row's question in the list of prompts.
        step: (R,) number of tokens that the row has generated.
        tokens: (R, T) the generated tokens, right-padded with -1.
    """

    question: Tensor
    step: Tensor
    tokens: Tensor


class Decoder(Protocol):
    """Turns tokens into logits for a batch of rows behind one shared prefix.

    Implemented by :class:`~zerogap.engine.shared_prompt_decoder.SharedPromptDecoder`, by
    :class:`~zerogap.engine.hf_decoder.HFDecoder` and by strategies that replace the model.
    """

    @property
    def model(self) -> PreTrainedModel:
        """The model that the logits come from."""

    @property
    def device(self) -> torch.device:
        """Where the model and the logits are."""

    @property
    def single_prompt_only(self) -> bool:
        """Whether the batch must consist of rows of one prompt."""

    @property
    def prefers_sorted_rows(self) -> bool:
        """Whether steps are faster if rows of similar length are neighbours."""

    def reserve(self, capacity: Capacity | None) -> None:
        """Prepare for batches up to this capacity; None: for batches of any size."""

    def prefill_prefix(self, token_ids: list[int]) -> None:
        """Compute the shared prefix, which may be empty, and drop all rows."""

    def prefill_prompts(self, prompts: list[list[int]]) -> Tensor:
        """Add one row per prompt (its tokens after the prefix); returns their logits (q, V)."""

    def step(self, tokens: Tensor) -> Tensor:
        """Feed one token to every row (R,); returns the logits (R, V) of the next token.

        The next step may overwrite them.
        """

    def reorder(self, rows: IntArray) -> None:
        """Continue with rows (R',) of the current ones, in that order; a row may occur twice."""

    def kv_bytes(self) -> int:
        """Bytes of the prefix's keys and values."""


def to_device(values: NDArray[Any] | Tensor, device: torch.device) -> Tensor:
    """Copy host values to the device without waiting for what the device is doing."""
    host = torch.as_tensor(values)
    if device.type == "cuda":
        return host.pin_memory().to(device, non_blocking=True)
    return host.to(device)


Edit = Callable[[Tensor, Rows], Tensor]  # a strategy's change to a step's logits (R, V)
