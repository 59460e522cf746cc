"""Decoding through a model's own attention and cache: the reference, and the way for any model.

One prompt at a time, whose rows are all at the same step, so nothing is padded or masked and every
causal language model of `transformers` works. The prompt's keys and values are copied per row.
"""

import copy

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from zerogap.engine.decoder import Capacity, IntArray


class HFDecoder:
    """A :class:`~zerogap.engine.decoder.Decoder` on the model's own `DynamicCache`.

    Args:
        model: any causal language model; it is put into evaluation mode.
    """

    single_prompt_only = True
    preallocates = False
    prefers_sorted_rows = False

    def __init__(self, model: PreTrainedModel) -> None:
        model.eval()
        self.model = model
        self.device: torch.device = model.device
        self._num_rows = 0

    def reserve(self, capacity: Capacity | None) -> None:
        """Do nothing: the model's own cache grows."""

    @torch.inference_mode()
    def prefill_prefix(self, token_ids: list[int]) -> None:
        """Compute the shared prefix, which may be empty, and drop all rows."""
        self._prefix = DynamicCache(config=self.model.config)
        if token_ids:
            self._forward(torch.tensor([token_ids]), self._prefix)
        self._num_rows = 0

    def drop_rows(self) -> None:
        """Drop all rows and keep the shared prefix."""
        self._num_rows = 0

    @torch.inference_mode()
    def prefill_prompts(self, prompts: list[list[int]]) -> Tensor:
        """Compute one prompt and add its first row; returns the logits (1, V).

        Raises:
            ValueError: more than one prompt, or rows of another one are left.
        """
        if self._num_rows or len(prompts) != 1:
            raise ValueError("HFDecoder decodes one prompt at a time")
        self._cache = copy.deepcopy(self._prefix)
        self._num_rows = 1
        return self._forward(torch.tensor(prompts), self._cache)

    @torch.inference_mode()
    def step(self, tokens: Tensor) -> Tensor:
        """Feed one token to every row (R,); returns the logits (R, V) of the next token."""
        return self._forward(tokens[:, None], self._cache)

    def reorder(self, rows: IntArray) -> None:
        """Continue with rows (R',) of the current ones, in that order; a row may occur twice."""
        self._num_rows = len(rows)
        if self._num_rows:
            self._cache.batch_select_indices(torch.from_numpy(rows).to(self.device))

    def kv_bytes(self) -> int:
        """Bytes of the prefix's keys and values."""
        return sum(layer.keys.nbytes + layer.values.nbytes for layer in self._prefix.layers)

    def _forward(self, tokens: Tensor, cache: DynamicCache) -> Tensor:
        logits: Tensor = self.model(
            input_ids=tokens.to(self.device),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits
        return logits[:, -1]
