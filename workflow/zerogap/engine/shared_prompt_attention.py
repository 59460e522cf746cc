"""Attention over prefix, question and generated tokens, each read where it is stored.

`transformers` models reach this module through their attention interface, under the name
:data:`ATTENTION`. A forward pass is one of two kinds, and each kind is a class:

- :class:`PromptPass` computes the shared prefix, or a batch of questions behind it,
- :class:`StepPass` feeds one token to every row, behind its question and the prefix.

A new object is made for every forward pass and handed to the model as its `past_key_values`. The
model calls `update` with a layer's new keys and values (B, Hkv, L, D), and the attention interface
calls `attend` with what this returned. (`get_seq_length` lets models number positions; ours are
passed explicitly. Llama 4 scales queries by it, but gets its own cache because of its chunks.) The
object holds everything that is specific to that pass; the keys and values are in the
:class:`~zerogap.engine.prompt_cache.PromptCache`. A step takes one softmax over all three parts, so
its result is that of ordinary attention over the whole sequence.

Shapes: as in :mod:`zerogap.engine.prompt_cache`; Hq query heads, G = Hq / Hkv, W rows per question,
r rows of a chunk.
"""

import functools
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AttentionInterface

from zerogap.engine import kernels
from zerogap.engine.decoder import IntArray
from zerogap.engine.kernels.attention_parts import attend_prompts, attend_step
from zerogap.engine.prompt_cache import (
    KeyValue,
    LayerCache,
    PromptCache,
    padded_columns,
    padded_rows,
    row_grid,
)

ATTENTION = "zerogap_shared_prompt"
CPU_ROW_CHUNK = 64  # rows of similar length whose attention a CPU computes together


class Weighting(NamedTuple):
    """How a layer weighs keys by their scores, the scaled products with a query.

    Attributes:
        window: how many tokens a query sees; None: all up to itself.
        softcap: largest magnitude that scores are squeezed to (Gemma 2).
        sinks: (Hq,) scores of a further key without a value (gpt-oss).
    """

    window: int | None = None
    softcap: float | None = None
    sinks: Tensor | None = None

    @property
    def is_plain(self) -> bool:
        """Whether all earlier tokens are seen, and their weights are the softmax of the scores."""
        return all(option is None for option in self)

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Weights of scores (B, Hkv, G, …, K); the mask, -inf at unseen keys, is broadcast."""
        if self.softcap is not None:
            scores = self.softcap * torch.tanh(scores / self.softcap)
        scores = scores + mask
        if self.sinks is None:
            return scores.softmax(-1)
        by_head = self.sinks.to(scores.dtype).view(*scores.shape[1:3], *[1] * (scores.ndim - 3))
        with_sinks = torch.cat([scores, by_head.expand(*scores.shape[:-1], 1)], dim=-1)
        return with_sinks.softmax(-1)[..., :-1]


PLAIN = Weighting()


class PromptPass:
    """The forward pass over the shared prefix, or over right-padded questions behind it.

    Args:
        cache: its questions and rows are dropped before a prefix.
        lengths: tokens of each question, or of the prefix alone.
        is_prefix: whether it is the prefix, which the cache stores at once.

    Attributes:
        prefilled: layer index → the questions' keys and values (q, Hkv, S, D), for
            :meth:`PromptCache.add_questions`.
    """

    def __init__(self, cache: PromptCache, lengths: list[int], *, is_prefix: bool = False) -> None:
        self._cache, self._lengths, self._is_prefix = cache, lengths, is_prefix
        if is_prefix:
            cache.start_prefix(lengths[0])
        first = 0 if is_prefix else cache.prefix_length
        self.positions = first + torch.arange(max(lengths), device=cache.device)[None]
        self.prefilled: dict[int, KeyValue] = {}

    def update(
        self, key: Tensor, value: Tensor, layer_index: int, *_: object, **__: object
    ) -> KeyValue:
        """Store the prefix of a layer, or keep the questions' keys and values."""
        if self._is_prefix:
            self._cache.store_prefix(layer_index, key[0], value[0])
            return key, value
        if layer_index not in self._cache.layers:  # the prefix is empty
            self._cache.store_prefix(layer_index, key[0, :, :0], value[0, :, :0])
        self.prefilled[layer_index] = key, value
        return key, value

    def get_seq_length(self, *_: object) -> int:
        """Length of the prefix."""
        return self._cache.prefix_length

    def attend(
        self,
        layer_index: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scaling: float,
        weighting: Weighting = PLAIN,
    ) -> Tensor:
        """Causal attention to the prefix and, within each question, to earlier tokens.

        Padding is on the right, so no real token sees it. Queries are (B, Hq, L, D), keys and
        values as returned by :meth:`update`, the result is (B, L, Hq, D).
        """
        if self._is_prefix:
            return _causal_attention(query, key, value, scaling, weighting)
        layer = self._cache.layers[layer_index]
        prefix = layer.prefix
        # Decided here, before generated tokens are stored: this is where the window is known.
        is_plain = weighting.is_plain and query.shape[-1] == value.shape[-1]
        layer.step_kernel = kernels.step_kernel(query, prefix[0]) if is_plain else None
        if is_plain and kernels.attends_to_parts(query):
            return attend_prompts(prefix, query * scaling, key, value, self._lengths)
        key, value = (
            torch.cat([before.expand(len(part), *before.shape), part], dim=2)
            for before, part in zip(prefix, (key, value), strict=True)
        )
        return _causal_attention(query, key, value, scaling, weighting)


def step_plan(cache: PromptCache) -> tuple[int, list[IntArray]]:
    """Make room for a cache's next step; its width and arrays, as :class:`StepPass` takes them.

    Steps with the same width and array shapes run the same kernels, which is what makes a captured
    CUDA graph reusable. With a capacity the width and R are therefore rounded up; padding rows
    write to storage that no row uses, and their logits are ignored.
    """
    width = cache.make_room_for_step()
    row_of_cell, cell_of_row = row_grid(cache)
    start = cache.prefix_length + cache.question_length[cache.row_question]
    padding = 0
    if cache.capacity is not None:
        padding = min(padded_rows(len(start)), cache.capacity.max_rows) - len(start)
        # A kernel that reads no padding needs no shape of its own for every width.
        any_width = all(layer.step_kernel == "gpu" for layer in cache.layers.values())
        width = padded_columns(cache.capacity.max_new_tokens if any_width else width)
    by_row = [np.pad(array, (0, padding)) for array in (start, cache.num_generated, cell_of_row)]
    return width, [*by_row, row_of_cell]


class StepPass:
    """The forward pass over one token per row.

    Args:
        cache: with room for the tokens, see :func:`step_plan`.
        width: generated tokens of the longest row after this step, or more.
        start: (R,) position of each row's first generated token.
        length: (R,) generated tokens of each row so far, which is the column of the new one.
        cell_of_row: (R,) see :func:`~zerogap.engine.prompt_cache.row_grid`.
        row_of_cell: (Q, W) see there.
    """

    def __init__(
        self,
        cache: PromptCache,
        width: int,
        start: Tensor,
        length: Tensor,
        cell_of_row: Tensor,
        row_of_cell: Tensor,
    ) -> None:
        self._cache, self._width = cache, width
        self._start, self._length = start, length
        self._cell_of_row, self._row_of_cell = cell_of_row, row_of_cell
        self._row_index = torch.arange(len(start), device=cache.device)
        # (Q,) rows of each question.
        self._num_rows = np.bincount(cache.row_question, minlength=len(cache.question_length))
        self._chunks = _row_chunks(cache, len(start), width)
        self._masks: dict[int | None, Tensor] = {}  # window → mask; layers share them
        self.positions = (start + length)[:, None]

    def update(
        self, key: Tensor, value: Tensor, layer_index: int, *_: object, **__: object
    ) -> KeyValue:
        """Store each row's new token; returns all generated ones (R, Hkv, T, D) of the layer."""
        generated_key, generated_value = self._cache.layers[layer_index].generated
        generated_key[self._row_index, :, self._length] = key[:, :, 0]
        generated_value[self._row_index, :, self._length] = value[:, :, 0]
        visible = slice(0, len(self._row_index)), slice(None), slice(0, self._width)
        return generated_key[visible], generated_value[visible]

    def get_seq_length(self, *_: object) -> int:
        """Length of the prefix."""
        return self._cache.prefix_length

    def attend(
        self,
        layer_index: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scaling: float,
        weighting: Weighting = PLAIN,
    ) -> Tensor:
        """Attention of each row's query to the prefix, its question and its generated tokens.

        Arguments as in :meth:`PromptPass.attend`.
        """
        layer = self._cache.layers[layer_index]
        num_rows, query_heads, _, size = query.shape
        heads = key.shape[1]
        grouped = (query[:, :, 0] * scaling).view(num_rows, heads, query_heads // heads, size)
        if layer.step_kernel is None:
            out = self._attend_by_products(layer, grouped, key, value, weighting)
        else:
            out = attend_step(
                layer,
                grouped,
                num_question=self._start - self._cache.prefix_length,
                num_generated=self._length + 1,
                row_of_cell=self._row_of_cell,
                cell_of_row=self._cell_of_row,
                num_rows=torch.from_numpy(self._num_rows),
                question_length=torch.from_numpy(self._cache.question_length),
            )
        return out.view(num_rows, 1, query_heads, -1)

    def _attend_by_products(
        self,
        layer: LayerCache,
        query: Tensor,
        generated_key: Tensor,
        generated_value: Tensor,
        weighting: Weighting,
    ) -> Tensor:
        """Attention (R, Hkv, G, D) by matrix products, on any device and in any precision.

        The three parts have different batch dimensions: the prefix is one matrix for all rows, a
        question one for all rows of it (a grid of questions × their rows), generated tokens are a
        matrix per row. Their scores are concatenated per row, so that one softmax covers the three,
        and the weights are split again. Rows are taken in chunks, each as wide as its longest row.
        """
        group = query.shape[2]
        prefix_key, prefix_value = layer.prefix
        question_key, question_value = layer.question
        num_prefix, num_shared = prefix_key.shape[1], prefix_key.shape[1] + question_key.shape[2]
        mask = self._mask(weighting.window, num_shared)[:, None, None]
        question_scores = self._rows(
            _scores(self._questions(query), question_key.transpose(2, 3)), group
        )
        question_weights = query.new_empty(question_scores.shape)
        out = query.new_empty(*query.shape[:3], generated_value.shape[-1])
        for rows, width in self._chunks:
            chunk = query[rows]
            prefix_scores = _scores(_by_head(chunk), prefix_key.transpose(1, 2))
            own_scores = _scores(chunk, generated_key[rows, :, :width].transpose(2, 3))
            scores = torch.cat(
                [_by_row(prefix_scores, chunk), question_scores[rows], own_scores], dim=-1
            )
            seen = mask[rows, ..., : num_shared + width]
            weights = weighting.weights(scores, seen).to(query.dtype)
            prefix_out = _by_row(_by_head(weights[..., :num_prefix]) @ prefix_value, chunk)
            own_out = weights[..., num_shared:] @ generated_value[rows, :, :width]
            torch.add(prefix_out, own_out, out=out[rows])
            question_weights[rows] = weights[..., num_prefix:num_shared]
        out += self._rows(self._questions(question_weights) @ question_value, group)
        return out

    def _questions(self, rows: Tensor) -> Tensor:
        """The rows (R, Hkv, G, X) of each question, (Q, Hkv, W·G, X)."""
        num_rows, heads, _, size = rows.shape
        head = torch.arange(heads, device=rows.device)[:, None]
        head_of_cell = (self._row_of_cell[:, None] * heads + head).flatten()
        cells = rows.reshape(num_rows * heads, -1).index_select(0, head_of_cell)
        return cells.view(len(self._row_of_cell), heads, -1, size)

    def _rows(self, questions: Tensor, group: int) -> Tensor:
        """(Q, Hkv, W·G, X) → (R, Hkv, G, X); row r is in cell `cell_of_row[r]` of the Q·W."""
        num_questions, heads, _, size = questions.shape
        cells = questions.view(num_questions, heads, -1, group, size).transpose(1, 2)
        return cells.reshape(-1, heads, group, size)[self._cell_of_row]

    def _mask(self, window: int | None, num_shared: int) -> Tensor:
        """(R, P+S+T) in float32: 0 where a row sees a key, -inf where it does not.

        The shared columns (P+S) are at the position of their number. That of a generated token
        depends on where the row's question ends, so windows are compared by position, not column.
        """
        if window not in self._masks:
            num_rows, start = len(self._start), self._start[:, None]
            query_position = self.positions
            shared_position = torch.arange(num_shared, device=self._cache.device)
            own_position = start + torch.arange(self._width, device=self._cache.device)
            visible = torch.cat([shared_position < start, own_position <= query_position], dim=1)
            if window is not None:
                position = torch.cat([shared_position.expand(num_rows, -1), own_position], dim=1)
                visible &= query_position - position < window
            mask = torch.zeros(visible.shape, device=self._cache.device)
            self._masks[window] = mask.masked_fill_(~visible, float("-inf"))
        return self._masks[window]


def _by_head(rows: Tensor) -> Tensor:
    """(r, Hkv, G, X) → (Hkv, r·G, X)."""
    num_rows, heads, group, size = rows.shape
    return rows.transpose(0, 1).reshape(heads, num_rows * group, size)


def _by_row(heads: Tensor, like: Tensor) -> Tensor:
    """(Hkv, r·G, X) → (r, Hkv, G, X), with r and G of another such tensor."""
    num_rows, num_heads, group, _ = like.shape
    return heads.view(num_heads, num_rows, group, -1).transpose(0, 1)


def _scores(query: Tensor, key: Tensor) -> Tensor:
    """Products (…, A, B) of (…, A, D) and (…, D, B), in float32 or the factors' higher precision.

    A score of ten or more, rounded to bfloat16, would change its weight by percents.
    """
    if query.dtype.itemsize >= 4:
        return query @ key
    if not query.is_cuda:
        return query.float() @ key.float()
    product = torch.bmm(query.flatten(0, -3), key.flatten(0, -3), out_dtype=torch.float32)
    return product.view(*query.shape[:-1], key.shape[-1])


def _row_chunks(cache: PromptCache, num_rows: int, width: int) -> list[tuple[slice, int]]:
    """Rows to take together, and how many generated tokens the longest of them has then.

    On a CPU chunks are small, so that their scores stay in the processor's cache. With a capacity
    there is one chunk: a captured step may not depend on the rows' lengths.
    """
    if cache.capacity is not None:
        return [(slice(0, num_rows), width)]
    chunk = CPU_ROW_CHUNK if cache.device.type == "cpu" else num_rows
    return [
        (slice(first, first + chunk), int(cache.num_generated[first : first + chunk].max()) + 1)
        for first in range(0, num_rows, chunk)
    ]


def _causal_attention(
    query: Tensor, key: Tensor, value: Tensor, scaling: float, weighting: Weighting
) -> Tensor:
    """Attention (B, L, Hq, D) of the last L of K tokens: queries (B, Hq, L, D), keys (…, K, D)."""
    attention = functools.partial(
        nn.functional.scaled_dot_product_attention, scale=scaling, enable_gqa=True
    )
    num_queries, num_keys = query.shape[2], key.shape[2]
    if num_queries == num_keys and weighting.is_plain:
        # Flash attention is fastest without a mask.
        return attention(query, key, value, is_causal=True).transpose(1, 2)
    distance = (
        torch.arange(num_keys - num_queries, num_keys, device=query.device)[:, None]
        - torch.arange(num_keys, device=query.device)[None]
    )
    visible = (distance >= 0) & (distance < (weighting.window or num_keys))
    if weighting.softcap is None and weighting.sinks is None:
        if key.is_cuda:  # where a mask and fewer heads together would select the slow math kernel
            key, value = (
                x.repeat_interleave(query.shape[1] // x.shape[1], 1) for x in (key, value)
            )
        return attention(query, key, value, attn_mask=visible).transpose(1, 2)
    batch, heads, _, size = key.shape
    grouped = (query * scaling).reshape(batch, heads, -1, size)  # the queries of a key's heads
    scores = _scores(grouped, key.transpose(2, 3)).view(batch, heads, -1, num_queries, num_keys)
    mask = scores.new_zeros(visible.shape).masked_fill_(~visible, float("-inf"))
    weights = weighting.weights(scores, mask).to(query.dtype)
    outputs = weights.flatten(2, 3) @ value
    return outputs.view(batch, -1, num_queries, value.shape[-1]).transpose(1, 2)


# Arguments that models pass on to their attention and that change nothing here.
NEUTRAL_ARGUMENTS = {
    "dropout", "is_causal", "logits_to_keep", "output_attentions", "output_router_logits",
    "position_ids", "use_cache",
}  # fmt: skip


def _attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float,
    attention_pass: PromptPass | StepPass,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """The function that `transformers` calls; the mask is ours, so the model builds none.

    Raises:
        TypeError: the architecture computes its attention with something unknown here, such as a
            mask of its own (Doge).
    """
    unknown = [
        name
        for name, argument in {"attention_mask": attention_mask, **others}.items()
        if name not in NEUTRAL_ARGUMENTS and argument is not None
    ]
    if unknown:
        raise TypeError(f"unknown arguments of its attention: {', '.join(unknown)}")
    layer = _source_layer(module)
    weighting = Weighting(sliding_window, softcap, sinks=s_aux)
    return attention_pass.attend(layer, query, key, value, scaling, weighting), None


def _source_layer(module: Any) -> int:
    """The layer whose keys and values an attention module reads: its own, as a rule.

    A Gemma-4 layer that shares keys reads those of the last layer of its kind that has any.
    """
    if not getattr(module, "is_kv_shared_layer", False):
        return int(module.layer_idx)
    kinds = module.config.layer_types
    with_keys = range(len(kinds) - module.config.num_kv_shared_layers)
    return max(layer for layer in with_keys if kinds[layer] == kinds[module.layer_idx])


# No mask function is registered under this name, so the models build no mask.
AttentionInterface.register(ATTENTION, _attention)
