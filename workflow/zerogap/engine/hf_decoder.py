"""Decoding through a model's own attention, with its own cache or with none: for any model.

One question at a time, whose rows are all at the same step, so nothing is padded or masked. A
question's prompt is computed in one pass: layers with a recurrent state cannot continue a cached
prefix by several tokens.
"""

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from zerogap.engine.decoder import Capacity, IntArray

# Of newer versions of transformers, of earlier ones, and of state-space models.
CACHE_ARGUMENTS = ("cache", "past_key_values", "cache_params")
TOKENS_PER_PASS = 4096  # of rows whose whole sequences are computed together


class HFDecoder:
    """A :class:`~zerogap.engine.decoder.Decoder` on the model's own `DynamicCache`, or without one.

    Args:
        model: any causal language model; it is put into evaluation mode.
        cached: False computes every row's whole sequence for every token: slow, and right for
            models that ignore a cache or misuse it.
    """

    single_prompt_only = True
    prefers_sorted_rows = False

    def __init__(self, model: PreTrainedModel, *, cached: bool = True) -> None:
        model.eval()
        self.model = model
        self.device: torch.device = model.device
        self.cached = cached
        self._prefix: list[int] = []
        self._tokens = torch.empty(0, 0, dtype=torch.long)  # (R, L), prompts included
        self._cache: DynamicCache | None = None

    def reserve(self, capacity: Capacity | None) -> None:
        """Do nothing: the model's own cache grows."""

    def prefill_prefix(self, token_ids: list[int]) -> None:
        """Remember the shared prefix, which may be empty, and drop all rows."""
        self._prefix = token_ids
        self._tokens = self._tokens[:0]

    @torch.inference_mode()
    def prefill_prompts(self, prompts: list[list[int]]) -> Tensor:
        """Compute one prompt and add its first row; returns the logits (1, V).

        Raises:
            ValueError: more than one prompt, or rows of another one are left.
        """
        if len(self._tokens) or len(prompts) != 1:
            raise ValueError("HFDecoder decodes one prompt at a time")
        self._tokens = torch.tensor([self._prefix + prompts[0]], device=self.device)
        self._cache = DynamicCache(config=self.model.config) if self.cached else None
        return self._next_logits(self._tokens)

    @torch.inference_mode()
    def step(self, tokens: Tensor) -> Tensor:
        """Feed one token to every row (R,); returns the logits (R, V) of the next token."""
        self._tokens = torch.cat([self._tokens, tokens[:, None].to(self.device)], dim=1)
        return self._next_logits(self._tokens[:, -1:] if self.cached else self._tokens)

    def reorder(self, rows: IntArray) -> None:
        """Continue with rows (R',) of the current ones, in that order; a row may occur twice."""
        index = torch.from_numpy(rows).to(self.device)
        self._tokens = self._tokens[index]
        if self._cache is not None and len(rows):
            self._cache.reorder_cache(index)

    def kv_bytes(self) -> int:
        """Zero: nothing of the prefix is kept."""
        return 0

    def _next_logits(self, tokens: Tensor) -> Tensor:
        if self._cache is not None:
            num_cached = self._tokens.shape[1] - tokens.shape[1]
            return logits_of(self.model, tokens, cache=self._cache, num_cached=num_cached)[:, -1]
        rows_per_pass = max(1, TOKENS_PER_PASS // tokens.shape[1])
        passes = torch.split(tokens, rows_per_pass)
        return torch.cat([logits_of(self.model, rows)[:, -1] for rows in passes])


def logits_of(
    model: PreTrainedModel,
    tokens: Tensor,
    *,
    last: int = 1,
    cache: DynamicCache | None = None,
    num_cached: int = 0,
) -> Tensor:
    """A model's logits (R, ≥ last, V) at the last positions of tokens (R, L) on its device.

    Some architectures return those of all positions. The tokens follow on the `num_cached` ones of
    a cache, which is extended by them; without one they are whole sequences.
    """
    options: dict[str, Any] = {"use_cache": cache is not None}
    if cache is not None:
        options[cache_argument(model)] = cache
        if "position_ids" in _accepted(model):  # without them Bamba counts from 0
            positions = torch.arange(num_cached, num_cached + tokens.shape[1], device=tokens.device)
            options["position_ids"] = positions.expand_as(tokens)
    if "logits_to_keep" in _accepted(model):
        options["logits_to_keep"] = last
    logits: Tensor = model(input_ids=tokens, **options).logits
    return logits


def cache_argument(model: PreTrainedModel) -> str:
    """The name of the argument by which a model's forward pass takes a cache.

    Raises:
        TypeError: it takes none.
    """
    name = next((name for name in CACHE_ARGUMENTS if name in _accepted(model)), None)
    if name is None:
        raise TypeError(f"{type(model).__name__} takes no cache")
    return name


def _accepted(model: PreTrainedModel) -> Mapping[str, inspect.Parameter]:
    unwrapped = getattr(model, "get_base_model", lambda: model)()  # from adapters
    return inspect.signature(unwrapped.forward).parameters
