"""RailCap (:mod:`zerogap.strategies.railcap`) as a logits processor of transformers."""

import torch
from torch import Tensor
from transformers import LogitsProcessor

from zerogap.strategies.rail import (
    Successor,
    Suppression,
    find_rail_tokens,
    last_ngrams,
    pad_trajectories,
    suppress,
)
from zerogap.strategies.railcap import RailCap


class RailCapLogitsProcessor(LogitsProcessor):  # type: ignore[misc]
    """RailCap for `model.generate(logits_processor=[...], do_sample=True)`; see docs/railcap.md.

    Args:
        trajectories: the greedy trajectory (generated tokens only) of each prompt of the batch.
            With `num_return_sequences` pass one per prompt or one per returned sequence.
        prompt_length: number of prompt tokens in `input_ids`, left padding included.
        n: the n-gram threshold.
        suppression: "cap" or "ban".
        successor: "last" or "first".

    Raises:
        ValueError: there are no trajectories, or a parameter is not one of its values.
    """

    def __init__(
        self,
        trajectories: list[list[int]],
        prompt_length: int,
        n: int = 4,
        suppression: Suppression = "cap",
        successor: Successor = "last",
    ) -> None:
        self._railcap = RailCap(n, suppression, successor)
        if not trajectories:
            raise ValueError("RailCap: no trajectories; pass one per prompt or one per row")
        self._trajectories = pad_trajectories(trajectories, n)
        self._prompt_length = prompt_length

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Return a copy of `scores` (R, V) with the rail token of each row suppressed.

        Args:
            input_ids: (R, L) prompt and generated tokens.
            scores: (R, V) logits of the next token, before the temperature.

        Raises:
            ValueError: the number of rows is not a multiple of the number of trajectories.
        """
        generated = input_ids[:, self._prompt_length :].cpu()
        num_rows, num_trajectories = len(generated), len(self._trajectories)
        if num_rows % num_trajectories:
            raise ValueError(
                f"RailCap: {num_trajectories} trajectories for a batch of {num_rows} rows; "
                "pass one per prompt or one per row"
            )
        # `generate` keeps the sequences of a prompt next to each other.
        trajectories = self._trajectories.repeat_interleave(num_rows // num_trajectories, dim=0)
        steps = torch.full((num_rows,), generated.shape[1])
        ngrams = last_ngrams(generated, steps, self._railcap.n)
        rail = find_rail_tokens(trajectories, ngrams, self._railcap.successor)
        return suppress(scores.clone(), rail, self._railcap.suppression, warns=True)
