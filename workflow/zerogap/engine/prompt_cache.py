"""Storage of keys and values: shared prefix, questions, and each row's generated tokens.

A prompt consists of the few-shot prefix (one for the whole model) and a question's own tokens (one
copy for all its samples). A row adds the tokens that it has generated. Each of the three parts is
stored once, and nothing shared is ever copied per row. How a query attends to the parts is the
subject of :mod:`zerogap.engine.shared_prompt_attention`; nothing here computes attention.

On a GPU storage is allocated once for the largest batch, its capacity, and stays at its address, as
CUDA graphs require. On a CPU there is no capacity: questions are stored as they come, and generated
tokens in a mapping for the largest batch, whose pages take memory when they are written. Without a
largest batch storage grows.

Shapes: R rows being decoded, Q question slots, Hkv key/value heads, D head size, P prefix length,
S length of the longest question, T generated tokens. Lengths, and which row belongs to which
question, are numpy arrays on the host, so that a step never waits for the device to learn them.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from zerogap.engine import memory
from zerogap.engine.decoder import Capacity, IntArray, to_device

COLUMN_MULTIPLE = 32  # generated tokens are stored in multiples of this many columns

KeyValue = tuple[Tensor, Tensor]


@dataclass
class LayerCache:
    """Keys and values of one layer.

    Attributes:
        prefix: (Hkv, P, D) each.
        question: (Q, Hkv, S, D) each, right-padded.
        generated: (≥R, Hkv, ≥T, D) each, right-padded.
        step_kernel: the compiled kernel that attends to them in a step, if any. In memory "cpu"
            reads them token by token (≥R, ≥T, Hkv, D) instead of head by head.
    """

    prefix: KeyValue
    question: KeyValue
    generated: KeyValue
    step_kernel: Literal["cpu", "gpu"] | None = None

    def fill(self, slots: Tensor, new: KeyValue, num_slots: int, columns: int) -> None:
        """Copy prefilled questions into their slots; storage moves only if it is too small."""
        longest = max(columns, self.question[0].shape[2], new[0].shape[2])
        if num_slots > len(self.question[0]) or longest > self.question[0].shape[2]:
            self.question = _enlarged(self.question, num_slots, longest)
        for store, part in zip(self.question, new, strict=True):
            store[slots, :, : part.shape[2]] = part

    def make_room(self, num_rows: int, width: int) -> None:
        """Ensure storage for generated tokens, see :meth:`PromptCache.make_room_for_step`."""
        rows, _, columns, _ = self.generated[0].shape
        if num_rows <= rows and width <= columns:
            return
        if num_rows > rows:
            rows = max(num_rows, rows + rows // 8)
        columns = max(columns, padded_columns(width))
        by_token = self.step_kernel == "cpu"
        self.generated = _enlarged(self.generated, rows, columns, by_token=by_token, mapped=True)


class PromptCache:
    """The keys and values of one model. Rows are numbered 0 … R-1, in any order of questions.

    Args:
        device: of the model.
        capacity: the largest batch, if storage is to be allocated for it at once.
        mapped: the largest batch, if there is no capacity but its generated tokens are mapped.

    Attributes:
        layers: layer index → its keys and values. Layers that read another layer's keys are absent.
        prefix_length: P.
        question_length: (Q,) tokens of the question in each slot.
        row_question: (R,) slot of each row's question.
        num_generated: (R,) generated tokens of each row.
    """

    def __init__(
        self,
        device: torch.device,
        capacity: Capacity | None = None,
        mapped: Capacity | None = None,
    ) -> None:
        self.device = device
        self.capacity = capacity
        self._mapped = mapped
        self.layers: dict[int, LayerCache] = {}
        self.question_length: IntArray = np.zeros(capacity.max_prompts if capacity else 0, np.int64)
        self.start_prefix(0)

    def is_reusable(self, prefix_length: int) -> bool:
        """Whether a new cache of this capacity would have the same storage."""
        return (
            self.capacity is not None
            and len(self.question_length) == self.capacity.max_prompts
            and prefix_length == self.prefix_length
        )

    def start_prefix(self, length: int) -> None:
        """Drop all questions and rows before a prefix of this length; storage stays in place."""
        self.prefix_length = length
        self.question_length = np.zeros_like(self.question_length)
        self.row_question: IntArray = np.zeros(0, dtype=np.int64)
        self.num_generated: IntArray = np.zeros(0, dtype=np.int64)

    def store_prefix(self, layer_index: int, key: Tensor, value: Tensor) -> None:
        """Store a layer's prefix keys and values (Hkv, P, D)."""
        if layer_index not in self.layers:
            prefix = key.contiguous(), value.contiguous()
            nothing = prefix[0][None][:0, :, :0], prefix[1][None][:0, :, :0]
            self.layers[layer_index] = LayerCache(prefix, question=nothing, generated=nothing)
            return
        # A cache used again: CUDA graphs read from this address.
        for store, new in zip(self.layers[layer_index].prefix, (key, value), strict=True):
            store.copy_(new)

    def add_questions(
        self, lengths: list[int], prefilled: dict[int, KeyValue], rows: IntArray
    ) -> None:
        """Add prefilled questions of these lengths, and rows behind them after the current rows.

        `prefilled` has each layer's keys and values (q, Hkv, S, D), right-padded; `rows` (r,) has
        the number, among these questions, of each new row's.
        """
        slots = self._free_slots(len(lengths))
        num_slots, places = len(self.question_length), to_device(slots, self.device)
        columns = self.capacity.max_prompt_len if self.capacity else 0
        for index, new in prefilled.items():
            self.layers[index].fill(places, new, num_slots, columns)
        self.question_length[slots] = lengths
        self.row_question = np.concatenate([self.row_question, slots[rows]])
        self.num_generated = np.concatenate([self.num_generated, np.zeros_like(rows)])

    def _free_slots(self, count: int) -> IntArray:
        """Slots (count,) without rows; if a capacity has too few, their number grows by half."""
        num_slots = len(self.question_length)
        free = np.setdiff1d(np.arange(num_slots), self.row_question)
        if len(free) < count:
            added = max(count - len(free), num_slots // 2 if self.capacity else 0)
            self.question_length = np.pad(self.question_length, (0, added))
            free = np.concatenate([free, num_slots + np.arange(added)])
        return free[:count]

    def reorder(self, rows: IntArray) -> None:
        """Continue with rows (R',) of the current ones, in that order; a row may occur twice.

        Only rows whose number changes are copied. A question without rows is dropped: its slot is
        free again with a capacity, its storage is released without one.
        """
        moves = rows != np.arange(len(rows))
        self.row_question, self.num_generated = self.row_question[rows], self.num_generated[rows]
        # A row that has no tokens yet may have no storage either.
        target = (moves & (self.num_generated > 0)).nonzero()[0]
        if len(target):
            source, width = rows[target], int(self.num_generated[target].max())
            self._make_room(len(rows), width)
            device_source, device_target = (to_device(x, self.device) for x in (source, target))
            for layer in self.layers.values():
                for store in layer.generated:
                    store[device_target, :, :width] = store[device_source, :, :width]
        if self.capacity is None:
            self._drop_unused_questions()

    def _drop_unused_questions(self) -> None:
        slots, self.row_question = np.unique(self.row_question, return_inverse=True)
        if len(slots) == len(self.question_length):
            return
        self.question_length = self.question_length[slots]
        longest = int(self.question_length.max(initial=0))
        kept = to_device(slots, self.device)
        for layer in self.layers.values():
            key, value = layer.question
            layer.question = key[kept, :, :longest], value[kept, :, :longest]

    def make_room_for_step(self) -> int:
        """Ensure storage for one more token per row; returns the longest row's length then."""
        width = int(self.num_generated.max()) + 1
        self._make_room(len(self.row_question), width)
        return width

    def end_step(self) -> None:
        """Count the token that a step has stored for every row."""
        self.num_generated = self.num_generated + 1

    def _make_room(self, num_rows: int, width: int) -> None:
        """Ensure storage for generated tokens of at least `num_rows` × `width`; contents are kept.

        With a largest batch the first call maps or allocates everything, in the sizes that padded
        steps need. Otherwise rows grow by an eighth at least, so that a batch that grows row by row
        is copied rarely. More would cost memory and save little: most rows enter while responses
        are short.
        """
        if largest := self.capacity or self._mapped:
            num_rows = largest.max_rows
            width = padded_columns(largest.max_new_tokens)
        for layer in self.layers.values():
            layer.make_room(num_rows, width)


def row_grid(cache: PromptCache) -> tuple[IntArray, IntArray]:
    """A grid with a line of a cache's rows per question, for products batched over questions.

    Returns:
        The row in each cell (Q, W), where unused cells repeat row 0, and the index of each row's
        cell in the flattened grid (R,). A question's rows are in its first cells.
    """
    question = cache.row_question
    num_rows, num_slots = len(question), len(cache.question_length)
    order = question.argsort(kind="stable")
    count = np.bincount(question, minlength=num_slots)
    rank = np.arange(num_rows) - np.repeat(count.cumsum() - count, count)
    width = cache.capacity.samples_per_prompt if cache.capacity else int(count.max())
    cell_of_row = np.empty(num_rows, dtype=np.int64)
    cell_of_row[order] = question[order] * width + rank
    row_of_cell = np.zeros(num_slots * width, dtype=np.int64)
    row_of_cell[cell_of_row] = np.arange(num_rows)
    return row_of_cell.reshape(num_slots, width), cell_of_row


def padded_rows(rows: int) -> int:
    """The next of 8, 16, 32, 64, 128, 192, …: few shapes to capture, and whole tiles."""
    return max(8, 1 << (rows - 1).bit_length()) if rows <= 64 else -(-rows // 64) * 64


def padded_columns(columns: int) -> int:
    """The next multiple of :data:`COLUMN_MULTIPLE`."""
    return -(-columns // COLUMN_MULTIPLE) * COLUMN_MULTIPLE


def _enlarged(
    current: KeyValue, count: int, width: int, *, by_token: bool = False, mapped: bool = False
) -> KeyValue:
    """Keys and values (count, Hkv, width, D) that begin with the current ones (rows, Hkv, T, D).

    What follows is zero, because padding that is multiplied by a weight of 0 must not be NaN. With
    `by_token` the memory is laid out as (count, width, Hkv, D); `mapped` maps it on a CPU.
    """
    enlarged = []
    for old in current:
        rows, heads, columns, size = old.shape
        is_mapped = mapped and old.device.type == "cpu"
        zeros = memory.mapped_zeros if is_mapped else old.new_zeros
        shape = (count, width, heads, size) if by_token else (count, heads, width, size)
        new = zeros(shape, dtype=old.dtype)
        new = new.transpose(1, 2) if by_token else new
        new[:rows, :, :columns] = old
        enlarged.append(new)
    return enlarged[0], enlarged[1]
