"""Attention of all rows to the shared prefix, the longest part of every prompt.

It enters the rows' softmax as C score columns: one per prefix token by matrix products, or a single
one by flash attention. Shapes: as in :mod:`zerogap.engine.prompt_cache`, r rows of a chunk.
"""

from typing import Protocol

import torch
from torch import Tensor

from zerogap.engine import part_attention
from zerogap.engine.prompt_cache import KeyValue


class PrefixAttention(Protocol):
    """Attention of all rows to the prefix, which enters the softmax as some score columns."""

    columns: int

    def scores(self, rows: slice) -> Tensor:
        """Scores (r, Hkv, G, C) of some rows."""

    def output(self, rows: slice, weights: Tensor) -> Tensor:
        """Weighted values (r, Hkv, G, D) for weights (r, Hkv, G, C)."""


class ProductPrefix:
    """The prefix by matrix products: one score column per prefix token."""

    def __init__(self, prefix: KeyValue, query: Tensor) -> None:
        self._key, self._value = prefix
        self._query = query
        self.columns = self._key.shape[1]

    def scores(self, rows: slice) -> Tensor:
        """Scores (r, Hkv, G, P) of some rows."""
        query = self._query[rows]
        count, heads, group, size = query.shape
        flat = query.transpose(0, 1).reshape(heads, count * group, size)
        scores = score_products(flat, self._key.transpose(1, 2))
        return scores.view(heads, count, group, self.columns).transpose(0, 1)

    def output(self, rows: slice, weights: Tensor) -> Tensor:
        """Weighted values (r, Hkv, G, D) for weights (r, Hkv, G, P)."""
        count, heads, group, _ = weights.shape
        flat = weights.transpose(0, 1).reshape(heads, count * group, self.columns)
        return (flat @ self._value).view(heads, count, group, -1).transpose(0, 1)


class FlashPrefix:
    """The prefix by flash attention, as a single score column.

    Its score is the logarithm of all its keys' summed weights, its value their weighted mean. This
    is exact: a softmax over groups of keys may be taken group by group.
    """

    columns = 1

    def __init__(self, prefix: KeyValue, query: Tensor) -> None:
        num_rows, heads, group, size = query.shape
        out, score = part_attention.prefix_part(prefix, query)
        self._out = out.view(heads, num_rows, group, size).transpose(0, 1)
        self._score = score.view(heads, num_rows, group).transpose(0, 1)

    def scores(self, rows: slice) -> Tensor:
        """Logarithm of the summed weights (r, Hkv, G, 1) of some rows."""
        return self._score[rows, ..., None]

    def output(self, rows: slice, weights: Tensor) -> Tensor:
        """Weighted values (r, Hkv, G, D) for weights (r, Hkv, G, 1)."""
        return weights * self._out[rows]


def prefix_attention(prefix: KeyValue, query: Tensor, window: int | None) -> PrefixAttention:
    """By flash attention where the device has it and no window hides a part of the prefix."""
    key, _ = prefix
    sees_all = window is None and key.shape[1] > 0
    if sees_all and part_attention.has_flash_attention(query, key):
        return FlashPrefix(prefix, query)
    return ProductPrefix(prefix, query)


def score_products(query: Tensor, key: Tensor) -> Tensor:
    """Products (…, A, B) of (…, A, D) and (…, D, B), in float32 or the factors' higher precision.

    A score of ten or more, rounded to bfloat16, would change its weight by percents.
    """
    if query.dtype.itemsize >= 4:
        return query @ key
    if not query.is_cuda:
        return query.float() @ key.float()
    product = torch.bmm(query.flatten(0, -3), key.flatten(0, -3), out_dtype=torch.float32)
    return product.view(*query.shape[:-1], key.shape[-1])
