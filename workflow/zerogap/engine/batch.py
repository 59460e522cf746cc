"""Bookkeeping of the decoding loop: which samples are being drawn, and in which rows.

Everything here is numpy on the host. The decoder holds the keys and values of the same rows in
the same order; :meth:`Batch.append` returns the order that it must follow.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from zerogap.engine.decoder import IntArray, Response, Rows, SamplingParams, to_device
from zerogap.engine.drawing import uniforms
from zerogap.engine.stop_strings import StopStrings

SORT_INTERVAL = 16  # steps between two orderings of the rows by length


class Batch:
    """The samples being drawn and the rows that they share.

    Rows (R): the distinct responses so far of every prompt. Samples (N): each belongs to a row.
    Several samples share a row while they have drawn the same tokens.
    """

    def __init__(
        self, sampling: SamplingParams, stops: StopStrings, end_tokens: Sequence[int]
    ) -> None:
        self._sampling, self._stops, self._end_tokens = sampling, stops, np.array(end_tokens)
        no_rows, max_new_tokens = np.zeros(0, dtype=np.int64), sampling.max_new_tokens
        self._row_prompt, self._row_step = no_rows, no_rows  # (R,)
        self._row_tokens = np.zeros((0, max_new_tokens), dtype=np.int64)  # (R, T)
        self._stop_state = stops.start(0)  # (R,)
        self._sample_row, self._sample_id = no_rows, no_rows  # (N,)
        self._uniforms = np.zeros((0, max_new_tokens))  # (N, T); empty in greedy decoding
        self._entropies = np.zeros((0, max_new_tokens))  # (N, T); empty unless greedy
        self._responses: dict[int, list[Any]] = {}  # Response, or None while it is being drawn
        self._unfinished: dict[int, int] = {}  # prompt → samples still being drawn
        self._num_steps = 0

    @property
    def num_samples(self) -> int:
        """How many samples are being drawn."""
        return len(self._sample_row)

    def add(self, prompts: list[int], question_ids: list[str], num_samples: int) -> None:
        """Add one row per prompt (its index), shared by `num_samples` new samples."""
        rows = len(self._row_prompt) + np.arange(len(prompts))
        tokens = np.full((len(prompts), self._row_tokens.shape[1]), -1)
        self._row_prompt = np.concatenate([self._row_prompt, prompts])
        self._row_step = np.concatenate([self._row_step, np.zeros_like(rows)])
        self._row_tokens = np.concatenate([self._row_tokens, tokens])
        self._stop_state = np.concatenate([self._stop_state, self._stops.start(len(rows))])
        self._sample_row = np.concatenate([self._sample_row, rows.repeat(num_samples)])
        sample_ids = np.tile(np.arange(num_samples), len(rows))
        self._sample_id = np.concatenate([self._sample_id, sample_ids])
        steps = self._sampling.max_new_tokens
        if self._sampling.temperature == 0:
            entropies = np.zeros((len(rows) * num_samples, steps))
            self._entropies = np.concatenate([self._entropies, entropies])
        else:
            seed, stream = self._sampling.seed, self._sampling.stream
            draws = [
                uniforms(seed, stream, name, range(num_samples), steps) for name in question_ids
            ]
            self._uniforms = np.concatenate([self._uniforms, *draws])
        for prompt in prompts:
            self._responses[prompt] = [None] * num_samples
            self._unfinished[prompt] = num_samples

    def rows(self) -> Rows:
        """The rows as a strategy sees them."""
        return Rows(
            torch.from_numpy(self._row_prompt),
            torch.from_numpy(self._row_step),
            torch.from_numpy(self._row_tokens),
        )

    def draws(self) -> tuple[NDArray[np.float64], IntArray]:
        """Each sample's uniform (N,) for this step and the row (N,) that it draws from."""
        if not len(self._uniforms):  # greedy decoding draws nothing
            return np.zeros(self.num_samples), self._sample_row
        step = self._row_step[self._sample_row]
        return self._uniforms[np.arange(self.num_samples), step], self._sample_row

    def prompt_and_step(self, sample: int) -> tuple[int, int]:
        """Index of the prompt and number of generated tokens of the n-th sample of the batch."""
        row = self._sample_row[sample]
        return int(self._row_prompt[row]), int(self._row_step[row])

    def last_tokens(self, device: torch.device) -> Tensor:
        """The latest token (R,) of every row."""
        latest = self._row_tokens[np.arange(len(self._row_step)), self._row_step - 1]
        return to_device(latest, device)

    def append(
        self, tokens: IntArray, entropies: NDArray[np.float64] | None, *, sort_rows: bool
    ) -> IntArray:
        """Append each sample's drawn token (N,); finished samples leave, rows split.

        Samples of one row that drew different tokens continue in different rows. A child row is
        identified by the pair (parent row, token): `np.unique` over the pairs gives the children,
        sorted by parent, and each sample's child. Only then are they assigned to row numbers
        (:meth:`_row_numbers`), so that the decoder has to copy as few rows as possible.

        Args:
            tokens: (N,) each sample's token.
            entropies: (N,) of the distributions they were drawn from, in greedy decoding.
            sort_rows: sort the rows by length every :data:`SORT_INTERVAL` steps.

        Returns:
            The rows to continue with (R',), as current row numbers, for :meth:`Decoder.reorder`.
        """
        sample_row = self._sample_row
        step = self._row_step[sample_row]
        states = self._stops.advance(self._stop_state[sample_row], tokens)
        if entropies is not None:
            self._entropies[np.arange(len(sample_row)), step] = entropies
        ended = (tokens[:, None] == self._end_tokens).any(axis=1)
        stopped = self._stops.reached(states)
        finished = ended | stopped | (step + 1 == self._sampling.max_new_tokens)
        for sample in finished.nonzero()[0]:
            reason = "eos" if ended[sample] else "stop" if stopped[sample] else "length"
            self._finish(sample, int(tokens[sample]), reason)

        active = ~finished
        pairs = sample_row[active] * (tokens.max(initial=0) + 1) + tokens[active]
        _, first, child = np.unique(pairs, return_index=True, return_inverse=True)
        parent = sample_row[active][first]  # ascending: the children of a row are neighbours
        self._num_steps += 1
        if sort_rows and self._num_steps % SORT_INTERVAL == 0:
            row_number = np.argsort(np.argsort(-self._row_step[parent], kind="stable"))
        else:
            row_number = self._row_numbers(parent)
        rows: IntArray = np.empty_like(parent)
        rows[row_number] = parent

        self._row_prompt, self._row_step = self._row_prompt[rows], self._row_step[rows]
        self._row_tokens = self._row_tokens[rows]
        self._row_tokens[row_number, self._row_step[row_number]] = tokens[active][first]
        self._stop_state = np.empty_like(parent)
        self._stop_state[row_number] = states[active][first]
        self._row_step += 1
        self._sample_row, self._sample_id = row_number[child], self._sample_id[active]
        if len(self._uniforms):
            self._uniforms = self._uniforms[active]
        else:
            self._entropies = self._entropies[active]
        return rows

    def _row_numbers(self, parent: IntArray) -> IntArray:
        """Row number of each child of rows `parent` (R',), as a permutation of 0 … R'-1.

        A child usually takes its parent's number, which costs the decoder nothing: the first
        child stays, the others and rows beyond the new end fill the gaps.
        """
        stays = np.ones(len(parent), dtype=bool)
        stays[1:] = parent[1:] != parent[:-1]
        stays &= parent < len(parent)
        numbers = parent.copy()
        numbers[~stays] = np.setdiff1d(np.arange(len(parent)), parent[stays], assume_unique=True)
        return numbers

    def finished(self) -> Iterator[tuple[int, list[Response]]]:
        """Prompts whose responses are complete, each one once: (index, responses)."""
        for prompt in [prompt for prompt, count in self._unfinished.items() if not count]:
            del self._unfinished[prompt]
            yield prompt, self._responses.pop(prompt)

    def _finish(self, sample: int, token: int, reason: str) -> None:
        row, sample_id = self._sample_row[sample], self._sample_id[sample]
        length, prompt = int(self._row_step[row]), int(self._row_prompt[row])
        entropies = self._entropies[sample, : length + 1].tolist() if len(self._entropies) else []
        token_ids = [*self._row_tokens[row, :length].tolist(), token]
        self._responses[prompt][sample_id] = Response(token_ids, reason, entropies)
        self._unfinished[prompt] -= 1
