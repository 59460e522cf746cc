"""Attention over prefix, question and own tokens, each read where it is stored.

`transformers` models reach this module through their attention interface, under the name
:data:`ATTENTION`. A forward pass is one of three kinds, and each kind is a class:

- :class:`PrefixPass` computes the shared prefix,
- :class:`QuestionPass` computes a batch of questions behind the prefix,
- :class:`StepPass` feeds one token to every row, behind its question and the prefix.

A new object is made for every forward pass and handed to the model as its `past_key_values`. It
holds everything that is specific to that pass; the keys and values are in the
:class:`~zerogap.engine.prompt_cache.PromptCache`. A step takes one softmax over all three parts, so
its result is that of ordinary attention over the whole sequence.

Shapes: as in :mod:`zerogap.engine.prompt_cache`; Hq query heads, G = Hq / Hkv, W rows per question,
C score columns of the prefix.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AttentionInterface

from zerogap.engine import cpu_kernels, gpu_kernels, part_attention
from zerogap.engine.decoder import IntArray
from zerogap.engine.prefix_attention import prefix_attention, score_products
from zerogap.engine.prompt_cache import (
    KeyValue,
    LayerCache,
    PromptCache,
    padded_columns,
    padded_rows,
    stored,
)

ATTENTION = "zerogap_shared_prompt"
CPU_ROW_CHUNK = 64  # rows of similar length whose attention a CPU computes together


class AttentionPass(Protocol):
    """One forward pass: stores the new keys and values and attends to all that are visible."""

    @property
    def positions(self) -> Tensor:
        """Positions (1 or R, L) of the new tokens."""

    def update(
        self, key: Tensor, value: Tensor, layer_index: int, *_: object, **__: object
    ) -> KeyValue:
        """Store a layer's new keys and values (B, Hkv, L, D); returns what `attend` is given."""

    def get_seq_length(self, *_: object) -> int:
        """Called by the models to number positions; ours are passed explicitly."""

    def attend(
        self,
        layer_index: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scaling: float,
        window: int | None,
    ) -> Tensor:
        """Attention (B, L, Hq, D) of queries (B, Hq, L, D) to the parts of a layer.

        Args:
            layer_index: the layer whose keys and values are read.
            query: (B, Hq, L, D).
            key: as returned by :meth:`update`.
            value: as returned by :meth:`update`.
            scaling: factor of the scores.
            window: tokens that a query sees in a layer with a sliding window.
        """


class PrefixPass:
    """The forward pass over the shared prefix; drops all questions and rows."""

    def __init__(self, cache: PromptCache, length: int) -> None:
        self._cache = cache
        cache.start_prefix(length)
        self.positions = torch.arange(length, device=cache.device)[None]

    def update(
        self, key: Tensor, value: Tensor, layer_index: int, *_: object, **__: object
    ) -> KeyValue:
        """Store the prefix of a layer, (1, Hkv, P, D)."""
        self._cache.store_prefix(layer_index, key[0], value[0])
        return key, value

    def get_seq_length(self, *_: object) -> int:
        """The prefix, which the explicit positions override."""
        return self._cache.prefix_length

    def attend(
        self,
        layer_index: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scaling: float,
        window: int | None,
    ) -> Tensor:
        """Causal attention within the prefix."""
        return _causal_attention(query, key, value, scaling, window)


class QuestionPass:
    """The forward pass over a right-padded batch of questions behind the prefix.

    Args:
        cache: with the prefix.
        lengths: tokens of each question.

    Attributes:
        prefilled: layer index → keys and values (q, Hkv, S, D), for
            :meth:`PromptCache.add_questions`.
    """

    def __init__(self, cache: PromptCache, lengths: list[int]) -> None:
        self._cache, self._lengths = cache, lengths
        own_positions = torch.arange(max(lengths), device=cache.device)[None]
        self.positions = cache.prefix_length + own_positions
        self.prefilled: dict[int, KeyValue] = {}

    def update(
        self, key: Tensor, value: Tensor, layer_index: int, *_: object, **__: object
    ) -> KeyValue:
        """Keep the questions' keys and values of a layer."""
        if layer_index not in self._cache.layers:  # the prefix is empty
            self._cache.store_prefix(layer_index, key[0, :, :0], value[0, :, :0])
        self.prefilled[layer_index] = key, value
        return key, value

    def get_seq_length(self, *_: object) -> int:
        """The prefix, which the explicit positions override."""
        return self._cache.prefix_length

    def attend(
        self,
        layer_index: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scaling: float,
        window: int | None,
    ) -> Tensor:
        """Causal attention to the prefix and, within each question, to earlier tokens.

        Padding is on the right, so no real token sees it.
        """
        layer = self._cache.layers[layer_index]
        # Decided here, before own tokens are stored: this is where the window is known.
        layer.own_by_token = window is None and cpu_kernels.apply_to(query)
        layer.own_by_length = (
            window is None
            and query.shape[-1] <= gpu_kernels.LARGEST_HEAD
            and gpu_kernels.apply_to(query)
            and (not self._cache.prefix_length or _has_flash_prefix(query, layer))
        )
        if window is None and part_attention.has_kernel(query):
            parts = stored(layer.prefix), query * scaling, key, value
            return _causal_attention_behind(*parts, self._lengths)
        prefix_key, prefix_value = stored(layer.prefix)
        key = torch.cat([prefix_key.expand(len(key), *prefix_key.shape), key], dim=2)
        value = torch.cat([prefix_value.expand(len(value), *prefix_value.shape), value], dim=2)
        return _causal_attention(query, key, value, scaling, window)


@dataclass(frozen=True)
class StepPlan:
    """What a decoding step needs to know besides its tokens, computed on the host.

    Steps with the same width and array shapes run the same kernels, which is what makes a captured
    CUDA graph reusable. With a capacity the width and R are therefore rounded up; padding rows
    write to storage that no row uses, and their logits are ignored.

    Attributes:
        width: own tokens of the longest row after this step.
        start: (R,) position of each row's first own token.
        length: (R,) own tokens of each row so far, which is the column of the new one.
        cell_of_row: (R,) see :class:`~zerogap.engine.prompt_cache.RowGrid`.
        row_of_cell: (Q, W) see there.
    """

    width: int
    start: IntArray
    length: IntArray
    cell_of_row: IntArray
    row_of_cell: IntArray

    @classmethod
    def of(cls, cache: PromptCache) -> "StepPlan":
        """The next step of a cache, in which room for it is made."""
        width = cache.make_room_for_step()
        grid = cache.row_grid()
        start = cache.prefix_length + cache.question_length[cache.row_question]
        padding = 0
        if cache.capacity is not None:
            padding = padded_rows(len(start)) - len(start)
            # A kernel that reads no padding needs no shape of its own for every width.
            any_width = all(layer.own_by_length for layer in cache.layers.values())
            width = padded_columns(cache.capacity.max_new_tokens if any_width else width)
        return cls(
            width,
            np.pad(start, (0, padding)),
            np.pad(cache.row_length, (0, padding)),
            np.pad(grid.cell_of_row, (0, padding)),
            grid.row_of_cell,
        )

    def arrays(self) -> tuple[IntArray, ...]:
        """The arrays, in the order in which :class:`StepPass` takes them."""
        return self.start, self.length, self.cell_of_row, self.row_of_cell


class StepPass:
    """The forward pass over one token per row.

    Args:
        cache: with room for the tokens, see :meth:`StepPlan.of`.
        width: see :class:`StepPlan`, as are the tensors, which are on the device.
        start: (R,).
        length: (R,).
        cell_of_row: (R,).
        row_of_cell: (Q, W).
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
        self._grid = _QuestionGrid(row_of_cell, cell_of_row)
        self._row_index = torch.arange(len(start), device=cache.device)
        self._chunks = _row_chunks(cache, len(start), width)
        self._masks: dict[int | None, Tensor] = {}  # window → mask; layers share them
        self.positions = (start + length)[:, None]

    def update(
        self, key: Tensor, value: Tensor, layer_index: int, *_: object, **__: object
    ) -> KeyValue:
        """Store each row's new token; returns all own tokens (R, Hkv, T, D) of the layer."""
        layer = self._cache.layers[layer_index]
        own_key, own_value = stored(layer.own)
        if layer.own_by_token:
            own = own_key.transpose(1, 2), own_value.transpose(1, 2)
            cpu_kernels.store((key[:, :, 0], value[:, :, 0]), self._length, own)
        else:
            own_key[self._row_index, :, self._length] = key[:, :, 0]
            own_value[self._row_index, :, self._length] = value[:, :, 0]
        num_rows = len(self._row_index)
        return own_key[:num_rows, :, : self._width], own_value[:num_rows, :, : self._width]

    def get_seq_length(self, *_: object) -> int:
        """The prefix, which the explicit positions override."""
        return self._cache.prefix_length

    def attend(
        self,
        layer_index: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scaling: float,
        window: int | None,
    ) -> Tensor:
        """Attention of each row's query to the prefix, its question and its own tokens."""
        layer = self._cache.layers[layer_index]
        num_rows, query_heads, _, size = query.shape
        heads = key.shape[1]
        grouped = (query[:, :, 0] * scaling).view(num_rows, heads, query_heads // heads, size)
        if layer.own_by_token:
            out = self._attend_by_kernel(layer, grouped)
        elif layer.own_by_length:
            out = self._attend_on_gpu(layer, grouped)
        else:
            out = self._attend_by_products(layer, grouped, key, value, window)
        return out.view(num_rows, 1, query_heads, size)

    def _attend_by_products(
        self,
        layer: LayerCache,
        query: Tensor,
        own_key: Tensor,
        own_value: Tensor,
        window: int | None,
    ) -> Tensor:
        """Attention (R, Hkv, G, D) by matrix products, on any device and in any precision.

        The three parts have different batch dimensions: the prefix is one matrix for all rows, a
        question one for all rows of it (the grid), own tokens are a matrix per row. Their scores
        are concatenated per row, so that one softmax covers the three, and the weights are split
        again. Rows are taken in chunks, each as wide as its longest row.
        """
        group = query.shape[2]
        question_key, question_value = stored(layer.question)
        prefix = prefix_attention(stored(layer.prefix), query, window)
        num_shared = prefix.columns + question_key.shape[2]
        mask = self._mask(window)[:, None, None, self._cache.prefix_length - prefix.columns :]
        question_scores = self._grid.rows(
            score_products(self._grid.questions(query), question_key.transpose(2, 3)), group
        )
        question_weights = query.new_empty(question_scores.shape)
        out = torch.empty_like(query)
        for rows, width in self._chunks:
            own_scores = score_products(query[rows], own_key[rows, :, :width].transpose(2, 3))
            scores = torch.cat([prefix.scores(rows), question_scores[rows], own_scores], dim=-1)
            scores = scores + mask[rows, ..., : num_shared + width]
            weights = scores.softmax(-1).to(query.dtype)
            prefix_out = prefix.output(rows, weights[..., : prefix.columns])
            own_out = weights[..., num_shared:] @ own_value[rows, :, :width]
            torch.add(prefix_out, own_out, out=out[rows])
            question_weights[rows] = weights[..., prefix.columns : num_shared]
        out += self._grid.rows(self._grid.questions(question_weights) @ question_value, group)
        return out

    def _attend_by_kernel(self, layer: LayerCache, query: Tensor) -> Tensor:
        """The same (R, Hq, D) part by part, combined by the compiled CPU kernel.

        Attention to the prefix and to the questions is computed first. Its output and the logarithm
        of its summed weights let the kernel treat each of the two as one more key next to the row's
        own tokens, in one softmax.
        """
        question = part_attention.part_attention(
            query,
            *stored(layer.question),
            row_of_cell=self._grid.row_of_cell,
            num_rows=torch.from_numpy(self._cache.row_grid().num_rows),
            num_keys=torch.from_numpy(self._cache.question_length),
        )
        if self._cache.prefix_length:
            prefix = part_attention.prefix_part(stored(layer.prefix), query)
        else:
            num_rows, heads, group, size = query.shape
            no_weight = question[1].new_full((heads, num_rows * group), float("-inf"))
            prefix = query.new_zeros(heads, num_rows * group, size), no_weight
        own_key, own_value = stored(layer.own)
        own = own_key.transpose(1, 2), own_value.transpose(1, 2)
        return cpu_kernels.attend(
            query.flatten(1, 2), own, self._length + 1, prefix, question, self._grid.cell_of_row
        )

    def _attend_on_gpu(self, layer: LayerCache, query: Tensor) -> Tensor:
        """The same (R, Hkv, G, D) by the compiled GPU kernel, which reads no padding.

        The prefix enters as in :meth:`_attend_by_kernel`.
        """
        prefix = None
        if self._cache.prefix_length:
            prefix = part_attention.prefix_part(stored(layer.prefix), query)
        return gpu_kernels.attend(
            query,
            prefix,
            stored(layer.question),
            stored(layer.own),
            self._start - self._cache.prefix_length,
            self._length + 1,
            self._grid.question_of_row,
        )

    def _mask(self, window: int | None) -> Tensor:
        """(R, P+S+T) in float32: 0 where a row sees a key, -inf where it does not.

        Prefix and question columns are at the position of their number. An own token's position
        depends on where the row's question ends, so windows are compared by position, not column.
        """
        if window not in self._masks:
            num_rows, start = len(self._start), self._start[:, None]
            query_position = start + self._length[:, None]
            num_shared = self._cache.prefix_length + self._cache.question_columns()
            shared_position = torch.arange(num_shared, device=self._cache.device)
            own_position = start + torch.arange(self._width, device=self._cache.device)
            visible = torch.cat([shared_position < start, own_position <= query_position], dim=1)
            if window is not None:
                position = torch.cat([shared_position.expand(num_rows, -1), own_position], dim=1)
                visible &= query_position - position < window
            mask = torch.zeros(visible.shape, device=self._cache.device)
            self._masks[window] = mask.masked_fill_(~visible, float("-inf"))
        return self._masks[window]


class _QuestionGrid:
    """Moves rows into a grid of questions × their rows and back, on the device."""

    def __init__(self, row_of_cell: Tensor, cell_of_row: Tensor) -> None:
        self.row_of_cell, self.cell_of_row = row_of_cell, cell_of_row
        self.question_of_row = cell_of_row // row_of_cell.shape[1]
        self._head_of_cell: Tensor | None = None  # (Q·Hkv·W,) a row's key head, of the R·Hkv

    def questions(self, rows: Tensor) -> Tensor:
        """(R, Hkv, G, X) → (Q, Hkv, W·G, X)."""
        num_rows, heads, _, size = rows.shape
        if self._head_of_cell is None:  # layers share it
            head = torch.arange(heads, device=rows.device)[:, None]
            self._head_of_cell = (self.row_of_cell[:, None] * heads + head).flatten()
        cells = rows.reshape(num_rows * heads, -1).index_select(0, self._head_of_cell)
        return cells.view(len(self.row_of_cell), heads, -1, size)

    def rows(self, questions: Tensor, group: int) -> Tensor:
        """(Q, Hkv, W·G, X) → (R, Hkv, G, X); row r is in cell `cell_of_row[r]` of the Q·W."""
        num_questions, heads, _, size = questions.shape
        cells = questions.view(num_questions, heads, -1, group, size).transpose(1, 2)
        return cells.reshape(-1, heads, group, size)[self.cell_of_row]


def _has_flash_prefix(query: Tensor, layer: LayerCache) -> bool:
    """Whether the GPU has flash attention to the prefix for queries like these (q, Hq, S, D)."""
    return part_attention.has_flash_attention(query[:1, :, :1], stored(layer.prefix)[0])


def _row_chunks(cache: PromptCache, num_rows: int, width: int) -> list[tuple[slice, int]]:
    """Rows to take together, and how many own tokens the longest of them has.

    On a CPU chunks are small, so that their scores stay in the processor's cache. With a capacity
    there is one chunk: a captured step may not depend on the rows' lengths.
    """
    if cache.capacity is not None:
        return [(slice(0, num_rows), width)]
    chunk = CPU_ROW_CHUNK if cache.device.type == "cpu" else num_rows
    return [
        (slice(first, first + chunk), int(cache.row_length[first : first + chunk].max()) + 1)
        for first in range(0, num_rows, chunk)
    ]


def _causal_attention(
    query: Tensor, key: Tensor, value: Tensor, scaling: float, window: int | None
) -> Tensor:
    """Attention (B, L, Hq, D) of the last L of K tokens: queries (B, Hq, L, D), keys (…, K, D)."""
    num_queries, num_keys = query.shape[2], key.shape[2]
    if num_queries == num_keys and window is None:  # flash attention is fastest without a mask
        out = nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, scale=scaling, enable_gqa=True
        )
        return out.transpose(1, 2)
    distance = (
        torch.arange(num_keys - num_queries, num_keys, device=query.device)[:, None]
        - torch.arange(num_keys, device=query.device)[None]
    )
    visible = (distance >= 0) & (distance < (window or num_keys))
    out = nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=visible, scale=scaling, enable_gqa=True
    )
    return out.transpose(1, 2)


def _causal_attention_behind(
    prefix: KeyValue, query: Tensor, key: Tensor, value: Tensor, lengths: list[int]
) -> Tensor:
    """Attention (B, L, Hq, D) of scaled queries (B, Hq, L, D) to a prefix and their own L tokens.

    Each of the two parts counts by its summed weights; the prefix may be empty. A sequence's own
    part is computed without the padding, whose amount would change its rounding.
    """
    batch, query_heads, length, size = query.shape
    heads = key.shape[1]
    own_out = query.new_zeros(batch, length, query_heads, size)
    own_weight = query.new_zeros(batch, length, query_heads, dtype=torch.float32)
    for at, count in enumerate(lengths):
        tokens = (slice(at, at + 1), slice(None), slice(0, count))
        out, weight = part_attention.causal_attention(query[tokens], key[tokens], value[tokens])
        own_out[at, :count], own_weight[at, :count] = out[0].transpose(0, 1), weight[0].T
    if not prefix[0].shape[1]:
        return own_out
    grouped = query.transpose(1, 2).reshape(batch * length, heads, query_heads // heads, size)
    prefix_out, prefix_weight = part_attention.prefix_part(prefix, grouped)
    shape = (heads, batch * length, query_heads // heads, -1)
    prefix_out = prefix_out.view(shape).transpose(0, 1).reshape(batch, length, query_heads, size)
    prefix_weight = prefix_weight.view(shape).transpose(0, 1).reshape(batch, length, query_heads)
    share = (own_weight - prefix_weight).sigmoid()[..., None]
    return torch.lerp(prefix_out.float(), own_out.float(), share).to(query.dtype)


def _attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float,
    attention_pass: AttentionPass,
    sliding_window: int | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """The function that `transformers` calls; the mask is ours, so the model builds none."""
    layer_index = _source_layer(module)
    return attention_pass.attend(layer_index, query, key, value, scaling, sliding_window), None


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
