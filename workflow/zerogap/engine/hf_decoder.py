"""Decoding through a model's own attention and cache: the reference, and the way for any model.

One question at a time, whose samples are all at the same step: nothing is padded or masked, so
this works for whatever `transformers` can decode. The prompt's keys and values are copied per row.
"""

import copy

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from zerogap.engine.decoder import Capacity


class HFDecoder:
    """A causal language model decoding the samples of one question; see `SharedPromptDecoder`."""

    single_prompt_only = True
    preallocates = False

    def __init__(self, model: PreTrainedModel, *, with_logits: bool = True) -> None:
        model.eval()
        self.model = model
        self.device = model.device
        self._rows = 0

    def reserve(self, capacity: Capacity | None) -> None:
        """Nothing: the model's own cache grows."""

    @torch.inference_mode()
    def prefill_prefix(self, token_ids: list[int]) -> None:
        """Compute the shared prefix, if there is one; forgets whatever was decoded before."""
        self._prefix = DynamicCache(config=self.model.config)
        if token_ids:
            self._forward([token_ids], self._prefix)
        self._rows = 0

    def prefill_prompts(self, questions: list[list[int]]) -> Tensor:
        """Prefill one question and open its first row; the logits (1, V) after it."""
        if self._rows or len(questions) != 1:
            raise ValueError("a HFDecoder decodes one question at a time")
        self._cache = copy.deepcopy(self._prefix)
        self._rows = 1
        return self._forward(questions, self._cache)

    def step(self, tokens: Tensor) -> Tensor:
        """Feed one token to every row (R,); the logits (R, V) for the next."""
        return self._forward(tokens[:, None], self._cache)

    def reorder(self, rows: np.ndarray) -> None:
        """Go on with the given rows of the present ones, in that order; a row may come twice."""
        self._rows = len(rows)
        if self._rows:
            self._cache.batch_select_indices(torch.from_numpy(rows).to(self.device))

    def kv_bytes(self) -> int:
        """Bytes of the prefix's keys and values."""
        return sum(layer.keys.nbytes + layer.values.nbytes for layer in self._prefix.layers)

    @torch.inference_mode()
    def _forward(self, tokens: Tensor | list[list[int]], cache: DynamicCache) -> Tensor:
        tokens = torch.as_tensor(tokens, device=self.device)
        return self.model(
            input_ids=tokens, past_key_values=cache, use_cache=True, logits_to_keep=1
        ).logits[:, -1]
