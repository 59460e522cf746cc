"""Keys and values of many samples behind a long shared prompt, each part stored once.

A prompt is the few-shot prefix (one for the whole model), a question's own tokens (one for all its
samples) and a row's generated tokens. A decoding step attends to the three parts where they lie
and takes one softmax over them: nothing shared is copied per row. `transformers` models reach
this through its attention interface, under the name `zerogap_shared_prompt`.

On a CPU the parts grow as the batch does. On a GPU they are taken at once for the largest batch
(:class:`~zerogap.engine.decoder.Capacity`) and a step's rows are padded to one of few sizes, so that its kernels can be
recorded and replayed (:mod:`zerogap.engine.cuda_graphs`).

Shapes: R rows being decoded, Q questions, Hq/Hkv query and key/value heads, D head size,
P prefix length, S longest question part, T tokens generated so far. What is counted (lengths,
which row belongs to which question) is kept on the host, so that a step never waits for the device.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from zerogap.engine.decoder import Capacity
from zerogap.engine.memory import to_device

_GROWTH = 32  # columns added when the rows' own store is full
_RUN = 64  # rows of similar length that are taken together


@dataclass
class _Layer:
    """Keys and values: prefix (Hkv, P, D), question (Q, Hkv, S, D), own (≥R, Hkv, ≥T, D).

    Attributes:
        in_parts: whether each part is attended to by itself. Then own tokens lie in memory one
            after the other, all heads of one together: as (≥R, ≥T, Hkv, D).
    """

    prefix: tuple[Tensor, Tensor] | None = None
    question: tuple[Tensor, Tensor] | None = None
    own: tuple[Tensor, Tensor] | None = None
    in_parts: bool = False


class PromptCache:
    """The three-part cache of one model. Rows are numbered 0 … R-1, in any order of questions."""

    def __init__(self, device: torch.device, capacity: Capacity | None = None) -> None:
        self.device = device
        self.capacity = capacity
        self.layers: dict[int, _Layer] = {}
        self.prefix_length = 0
        self._mode = "prefix"
        self._arriving: dict[int, tuple[Tensor, Tensor]] = {}
        self._biases: dict[int | None, Tensor] = {}
        self._empty(capacity.max_prompts if capacity else 0)

    def _empty(self, questions: int) -> None:
        self.question_length = np.zeros(questions, dtype=np.int64)  # (Q,)
        self.row_slot = np.zeros(0, dtype=np.int64)  # (R,) index into Q
        self.row_length = np.zeros(0, dtype=np.int64)  # (R,) own tokens
        self._grouped = False  # whether the grid of rows is that of the present rows

    # -- the protocol `transformers` models speak ---------------------------------------------

    def update(
        self, key: Tensor, value: Tensor, layer_index: int, *_: object, **__: object
    ) -> tuple[Tensor, Tensor]:
        """Store a layer's new keys and values; return those of the part being written."""
        layer = self.layers.setdefault(layer_index, _Layer())
        if self._mode == "prefix":
            if layer.prefix is None:
                layer.prefix = key[0], value[0]
            else:  # of a cache that is used again: in the place of the former
                for store, new in zip(layer.prefix, (key, value), strict=True):
                    store.copy_(new[0])
            return key, value
        if self._mode == "questions":
            layer.prefix = layer.prefix or (key[0, :, :0], value[0, :, :0])
            self._arriving[layer_index] = key, value
            return key, value
        for store, new in zip(layer.own, (key, value), strict=True):
            store[self._rows, :, self._column] = new[:, :, 0]
        rows = len(self._rows)
        return layer.own[0][:rows, :, : self._width], layer.own[1][:rows, :, : self._width]

    def get_seq_length(self, *_: object) -> int:
        """Asked for by the models only to number positions, which are passed explicitly."""
        return self.prefix_length

    # -- the parts ----------------------------------------------------------------------------

    def is_for(self, prefix_length: int) -> bool:
        """Whether what it stores lies as in a new cache of its capacity: it can be used again."""
        return (
            self.capacity is not None
            and len(self.question_length) == self.capacity.max_prompts
            and prefix_length == self.prefix_length
        )

    def begin_prefix(self, length: int) -> Tensor:
        """The next forward pass is the shared prefix; returns its positions (1, P).

        Questions and rows are forgotten; stores stay where they are.
        """
        self._mode = "prefix"
        self.prefix_length = length
        self._empty(len(self.question_length))
        return torch.arange(length, device=self.device)[None]

    def begin_questions(self, longest: int) -> Tensor:
        """The next forward pass is a right-padded batch of questions; its positions (1, S)."""
        self._mode = "questions"
        self._arriving = {}
        return self.prefix_length + torch.arange(longest, device=self.device)[None]

    def add_questions(self, lengths: list[int]) -> None:
        """Take the questions just prefilled, one row each, after the rows that are there."""
        if self.capacity is None:
            slots = len(self.question_length) + np.arange(len(lengths))
            for index, arriving in self._arriving.items():
                layer = self.layers[index]
                if layer.question is None or not len(self.question_length):
                    layer.question = arriving
                else:
                    layer.question = tuple(map(_stack, layer.question, arriving))
            self.question_length = np.concatenate([self.question_length, lengths])
        else:
            slots = self._free_slots(len(lengths))
            self._put_questions(to_device(slots, self.device))
            self.question_length[slots] = lengths
        self._arriving = {}
        self.row_slot = np.concatenate([self.row_slot, slots])
        self.row_length = np.concatenate([self.row_length, np.zeros_like(slots)])
        self._grouped = False

    def _free_slots(self, count: int) -> np.ndarray:
        """Slots (count,) that no row is of; there are half as many more when they run out."""
        known = len(self.question_length)
        free = np.setdiff1d(np.arange(known), self.row_slot)
        if len(free) < count:
            more = max(count - len(free), known // 2)
            self.question_length = np.pad(self.question_length, (0, more))
            free = np.concatenate([free, known + np.arange(more)])
        return free[:count]

    def _put_questions(self, slots: Tensor) -> None:
        """The questions just prefilled into their slots of stores that do not move otherwise."""
        count, longest = len(self.question_length), self.capacity.max_prompt_len
        for index, arriving in self._arriving.items():
            layer = self.layers[index]
            if layer.question is None or len(layer.question[0]) < count:
                layer.question = _enlarged(layer.question or (), arriving, count, longest)
            for store, new in zip(layer.question, arriving, strict=True):
                store[slots, :, : new.shape[2]] = new

    def reorder(self, rows: np.ndarray) -> None:
        """Go on with rows (R',) of the present ones, in that order; a row may come twice.

        Only rows that change their place are copied. A question without a row left goes.
        """
        target = (rows != np.arange(len(rows))).nonzero()[0]
        if not len(target) and len(rows) == len(self.row_slot):
            return
        source = rows[target]
        self._grouped = False
        self.row_slot, self.row_length = self.row_slot[rows], self.row_length[rows]
        if len(target) and (width := int(self.row_length[target].max())):
            self._make_room(len(rows), width)
            origin, place = (to_device(x, self.device) for x in (source, target))
            for layer in self.layers.values():
                for store in layer.own or ():
                    store[place, :, :width] = store[origin, :, :width]
        if self.capacity is not None:
            return  # a slot without rows is free
        slots, self.row_slot = np.unique(self.row_slot, return_inverse=True)
        if len(slots) < len(self.question_length):
            self.question_length = self.question_length[slots]
            longest = self.question_length.max(initial=0)
            chosen = to_device(slots, self.device)
            for layer in self.layers.values():
                if layer.question is not None:
                    layer.question = tuple(part[chosen, :, :longest] for part in layer.question)

    def plan_step(self) -> tuple[int, list[np.ndarray]]:
        """What a step of one token for each row needs to know, from the host.

        Returns:
            How many own tokens its longest row has then, and for :meth:`begin_step` where each
            row's own part starts (R,), how many tokens it has (R,), its cell (R,) in the grid and
            the grid (Q, W). With a capacity both the tokens and R are rounded up to one of a few
            sizes; rows that are none write where no row is and read that.
        """
        width = int(self.row_length.max()) + 1
        self._make_room(len(self.row_slot), width)
        if not self._grouped:
            self._group_rows()
        start = self.prefix_length + self.question_length[self.row_slot]
        per_row = [start, self.row_length, self._row_cell]
        if self.capacity is not None:
            none = padded_rows(len(start)) - len(start)
            per_row = [np.pad(values, (0, none)) for values in per_row]
            width = _round_columns(width)
        return width, [*per_row, self._cell_row]

    def begin_step(
        self, width: int, start: Tensor, column: Tensor, cell: Tensor, grid: Tensor
    ) -> Tensor:
        """The next forward pass is one token for each row; returns the positions (R, 1).

        With a capacity the pass then takes nothing from the host but shapes.
        """
        self._mode = "step"
        self._width, self._start, self._column = width, start, column
        self._cell, self._grid = cell, grid
        self._biases = {}
        rows = len(start)
        self._rows = torch.arange(rows, device=self.device)
        if self.capacity is not None:
            self._runs = [(slice(0, rows), width)]
        else:
            # On a CPU rows are taken in runs, each as wide as its longest row, whose scores stay in
            # the processor's cache: there a step waits for memory.
            run = _RUN if self.device.type == "cpu" else rows
            self._runs = [
                (slice(first, first + run), int(self.row_length[first : first + run].max()) + 1)
                for first in range(0, rows, run)
            ]
        return (start + column)[:, None]

    def end_step(self) -> None:
        """The token just fed is part of each row's own tokens now."""
        self.row_length = self.row_length + 1

    def _make_room(self, rows: int, width: int) -> None:
        """Rows' own stores of at least `rows` × `width`; what is in them stays."""
        if self.capacity is not None:
            rows = padded_rows(self.capacity.max_rows)
            width = _round_columns(self.capacity.max_new_tokens)
        for layer in self.layers.values():
            if layer.question is None:
                continue  # a layer that reads another's keys
            have, _, columns, _ = layer.own[0].shape if layer.own else (0, 0, 0, 0)
            if rows <= have and width <= columns:
                continue
            # By half as much again, so that a batch that grows row by row is seldom copied.
            more = max(rows, have + have // 2) if rows > have else have
            wider = _round_columns(width) if width > columns else columns
            layer.own = _enlarged(layer.own or (), layer.question, more, wider, layer.in_parts)

    # -- attention ----------------------------------------------------------------------------

    def attend(
        self,
        source: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scaling: float,
        window: int | None,
    ) -> Tensor:
        """Attention of `query` (B, Hq, L, D) over the parts of layer `source`; (B, L, Hq, D).

        `key` and `value` are those of the part being written, as `update` returned them.
        """
        if self._mode == "step":
            return self._attend_step(self.layers[source], query, key, value, scaling, window)
        if self._mode == "questions":
            layer = self.layers[source]
            layer.in_parts = window is None and _in_parts(query)
            key, value = (
                torch.cat([part.expand(len(new), *part.shape), new], dim=2)
                for part, new in zip(layer.prefix, (key, value), strict=True)
            )
        asked, known = query.shape[2], key.shape[2]
        if query.is_cuda and asked == known and window is None:  # flash takes no mask
            out = F.scaled_dot_product_attention(
                query, key, value, is_causal=True, scale=scaling, enable_gqa=True
            )
            return out.transpose(1, 2)
        distance = (
            torch.arange(known - asked, known, device=self.device)[:, None]
            - torch.arange(known, device=self.device)[None]
        )
        visible = (distance >= 0) & (distance < (window or known))
        out = F.scaled_dot_product_attention(
            query, key, value, attn_mask=visible, scale=scaling, enable_gqa=True
        )
        return out.transpose(1, 2)

    def _attend_step(
        self,
        layer: _Layer,
        query: Tensor,
        own_key: Tensor,
        own_value: Tensor,
        scaling: float,
        window: int | None,
    ) -> Tensor:
        rows, query_heads, _, size = query.shape
        heads = own_key.shape[1]
        group = query_heads // heads
        query = (query[:, :, 0] * scaling).view(rows, heads, group, size)
        if layer.in_parts:
            return self._attend_parts(layer, query)[:, None]

        prefix = self.prefix_length
        shared = prefix + layer.question[0].shape[2]
        bias = self._bias(window)[:, None, None]
        merged = window is None and prefix > 0 and _can_flash(query, layer.prefix[0])
        if merged:
            # The prefix is one key: its score is the log of all its keys' weights together, its
            # value what they weigh together. Every row sees all of it.
            prefix_value, prefix_score = self._of_prefix(layer, query)
            shared, bias, prefix = shared - prefix + 1, bias[..., prefix - 1 :], 1
        to_question = self._from_grid(
            _scores(self._to_grid(query), layer.question[0].transpose(2, 3)), group
        )
        of_question = query.new_empty(to_question.shape)
        out = torch.empty_like(query)
        for run, width in self._runs:
            mine = query[run]
            few = len(mine)
            if merged:
                to_prefix = prefix_score[run, ..., None]
            else:
                flat = mine.transpose(0, 1).reshape(heads, few * group, size)
                to_prefix = _scores(flat, layer.prefix[0].transpose(1, 2))
                to_prefix = to_prefix.view(heads, few, group, prefix).transpose(0, 1)
            to_own = _scores(mine, own_key[run, :, :width].transpose(2, 3))
            scores = torch.cat([to_prefix, to_question[run], to_own], dim=-1)
            scores = scores + bias[run, ..., : shared + width]
            weights = scores.softmax(-1).to(query.dtype)
            if merged:
                of_prefix = weights[..., :1] * prefix_value[run]
            else:
                flat = weights[..., :prefix].transpose(0, 1).reshape(heads, few * group, prefix)
                of_prefix = (flat @ layer.prefix[1]).view(heads, few, group, size).transpose(0, 1)
            of_own = weights[..., shared:] @ own_value[run, :, :width]
            torch.add(of_prefix, of_own, out=out[run])
            of_question[run] = weights[..., prefix:shared]
        out += self._from_grid(self._to_grid(of_question) @ layer.question[1], group)
        return out.view(rows, 1, query_heads, size)

    def _attend_parts(self, layer: _Layer, query: Tensor) -> Tensor:
        """Attention of scaled queries (R, Hkv, G, D) to prefix and question by themselves, and to
        the rows' own tokens in one softmax with what those weigh; (R, Hq, D).
        """
        from zerogap.engine import cpu_kernels  # numba: only where it is used

        group = query.shape[2]
        known = torch.from_numpy(self.question_length)
        value, weight = _flash(self._to_grid(query), *layer.question, known)
        question = self._cells(value, group), self._cells(weight[..., None], group)
        if self.prefix_length:
            prefix = self._of_prefix(layer, query)
        else:
            prefix = torch.zeros_like(query), weight.new_full(query.shape[:3], float("-inf"))
        return cpu_kernels.attend(
            query.flatten(1, 2),
            tuple(part.transpose(1, 2) for part in layer.own),
            self._column + 1,
            (prefix[0].flatten(1, 2), prefix[1].flatten(1)),
            (question[0].flatten(1, 2), question[1].flatten(1)),
            self._cell,
        ).to(query.dtype)

    def _of_prefix(self, layer: _Layer, query: Tensor) -> tuple[Tensor, Tensor]:
        """:func:`_flash` of queries (R, Hkv, G, D) and the prefix: (R, Hkv, G, D), (R, Hkv, G)."""
        rows, heads, group, size = query.shape
        flat = query.transpose(0, 1).reshape(1, heads, rows * group, size)
        value, weight = _flash(flat, *(part[None] for part in layer.prefix))
        return (
            value.view(heads, rows, group, size).transpose(0, 1),
            weight.view(heads, rows, group).transpose(0, 1),
        )

    def _bias(self, window: int | None) -> Tensor:
        """(R, P+S+T) in float32: 0 where a row sees a key, -inf where it does not."""
        if window not in self._biases:
            rows, start = len(self._start), self._start[:, None]
            here = start + self._column[:, None]
            longest = self._longest_question()
            # A key's position; that of a row's own key depends on where its question ends.
            shared = torch.arange(self.prefix_length + longest, device=self.device)
            own = start + torch.arange(self._width, device=self.device)
            visible = torch.cat([shared < start, own <= here], dim=1)
            if window is not None:
                place = torch.cat([shared.expand(rows, -1), own], dim=1)
                visible &= here - place < window
            bias = torch.zeros(visible.shape, device=self.device)
            self._biases[window] = bias.masked_fill_(~visible, float("-inf"))
        return self._biases[window]

    def _longest_question(self) -> int:
        """Columns of the questions' stores."""
        return self.capacity.max_prompt_len if self.capacity else int(self.question_length.max())

    def _group_rows(self) -> None:
        """Where each row lies in a (Q, W) grid of questions × their rows."""
        rows, questions = len(self.row_slot), len(self.question_length)
        order = self.row_slot.argsort(kind="stable")
        count = np.bincount(self.row_slot, minlength=questions)
        place = np.arange(rows) - np.repeat(count.cumsum() - count, count)
        width = self.capacity.samples_per_prompt if self.capacity else int(count.max())
        grid = np.zeros((questions, width), dtype=np.int64)
        grid[self.row_slot[order], place] = order
        cell = np.empty(rows, dtype=np.int64)
        cell[order] = self.row_slot[order] * width + place
        self._grouped = True
        self._cell_row, self._row_cell = grid, cell

    def _to_grid(self, rows: Tensor) -> Tensor:
        """(R, Hkv, G, X) → (Q, Hkv, W·G, X)."""
        spread = rows[self._grid].transpose(1, 2)
        return spread.reshape(*spread.shape[:2], -1, spread.shape[-1])

    def _from_grid(self, grid: Tensor, group: int) -> Tensor:
        """(Q, Hkv, W·G, X) → (R, Hkv, G, X)."""
        return self._cells(grid, group)[self._cell]

    def _cells(self, grid: Tensor, group: int) -> Tensor:
        """(Q, Hkv, W·G, X) → (Q·W, Hkv, G, X), of which row r's is the `_cell[r]`th."""
        questions, heads, _, size = grid.shape
        spread = grid.view(questions, heads, -1, group, size).transpose(1, 2)
        return spread.reshape(-1, heads, group, size)


def padded_rows(rows: int) -> int:
    """The next of 8, 16, 32, 64, 128, 192, …: shapes are few, and the kernels work in tiles."""
    return max(8, 1 << (rows - 1).bit_length()) if rows <= 64 else -(-rows // 64) * 64


def _round_columns(columns: int) -> int:
    return -(-columns // _GROWTH) * _GROWTH


def _enlarged(
    old: Sequence[Tensor],
    like: tuple[Tensor, Tensor],
    count: int,
    width: int,
    by_token: bool = False,
) -> tuple[Tensor, Tensor]:
    """Keys and values (count, Hkv, width, D) of zeros that begin with the old ones.

    Args:
        by_token: whether they lie in memory as (count, width, Hkv, D).
    """
    grown = []
    for part in like:
        _, heads, _, size = part.shape
        if by_token:
            grown.append(part.new_zeros(count, width, heads, size).transpose(1, 2))
        else:
            grown.append(part.new_zeros(count, heads, width, size))
    for new, known in zip(grown, old, strict=False):
        new[: known.shape[0], :, : known.shape[2]] = known
    return tuple(grown)


def _scores(query: Tensor, key: Tensor) -> Tensor:
    """Products (…, A, B) of (…, A, D) and (…, D, B), in float32 where the factors have less.

    Scores of ten and more, rounded to bfloat16, would shift their weights by percents.
    """
    if query.dtype.itemsize >= 4:
        return query @ key
    if not query.is_cuda:
        return query.float() @ key.float()
    product = torch.bmm(query.flatten(0, -3), key.flatten(0, -3), out_dtype=torch.float32)
    return product.view(*query.shape[:-1], key.shape[-1])


def _in_parts(query: Tensor) -> bool:
    """Whether each part is attended to by itself: in bfloat16 on a CPU.

    The flash kernel for prefix and questions and ours for the rows' own tokens multiply without
    converting the keys first, and keep the scores in float32 and in the processor's cache; full
    precision has nothing to convert.
    """
    return query.device.type == "cpu" and query.dtype == torch.bfloat16


def _can_flash(query: Tensor, key: Tensor) -> bool:
    """Whether the device has flash attention for query (R, Hkv, G, D) and key (Hkv, P, D)."""
    if not query.is_cuda:
        return False
    asked, known = query.flatten(0, 2)[None, None], key[None, :1]
    params = torch.backends.cuda.SDPAParams(asked, known, known, None, 0.0, False, False)
    return query.shape[-1] % 8 == 0 and torch.backends.cuda.can_use_flash_attention(params)


def _flash(
    query: Tensor, key: Tensor, value: Tensor, known: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Attention of scaled queries (B, H, A, D) to keys and values (B, H, K, D).

    Args:
        known: (B,) how many of the keys there are, the first; on a CPU alone.

    Returns:
        The output (B, H, A, D) and the log of the summed weights (B, H, A) in float32 or more.
    """
    if query.is_cuda:
        return torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, scale=1.0)[:2]
    mask = None
    if known is not None:
        beyond = torch.arange(key.shape[2]) >= known[:, None]
        # In the queries' type: beside float64 the kernel misreads float32.
        mask = query.new_zeros(beyond.shape).masked_fill_(beyond, float("-inf"))[:, None, None]
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        query, key, value, attn_mask=mask, scale=1.0
    )


def _stack(parts: Tensor, arriving: Tensor) -> Tensor:
    """Questions (Q, Hkv, S, D) and (q, Hkv, s, D) as one right-padded (Q+q, Hkv, max(S, s), D)."""
    longest = max(parts.shape[2], arriving.shape[2])
    return torch.cat(
        [F.pad(part, (0, 0, 0, longest - part.shape[2])) for part in (parts, arriving)]
    )
