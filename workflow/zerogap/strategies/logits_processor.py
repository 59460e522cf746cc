"""Strategies that edit logits as logits processors of transformers."""

import torch
from torch import Tensor
from transformers import LogitsProcessor

from zerogap.engine.decoder import Edit, Rows
from zerogap.strategies.rail import Successor, Suppression, pad_trajectories, rail_tokens, suppress
from zerogap.strategies.railcap import RailCap


class EditLogits(LogitsProcessor):  # type: ignore[misc]
    """A strategy's change to the logits, for `model.generate`.

    Args:
        edit: the strategy's function.
        questions: (Q,) index of each prompt's question.
        prompt_length: number of prompt tokens in `input_ids`, left padding included.
    """

    def __init__(self, edit: Edit, questions: Tensor, prompt_length: int) -> None:
        self._edit = edit
        self._questions = questions
        self._prompt_length = prompt_length

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Return the edited logits of the next token; the R / Q rows of a prompt are adjacent.

        Args:
            input_ids: (R, L) prompt and generated tokens.
            scores: (R, V) logits before the temperature.

        Raises:
            ValueError: the number of rows is not a multiple of the number of prompts.
        """
        if len(input_ids) % len(self._questions):
            raise ValueError(
                f"{len(self._questions)} trajectories for a batch of {len(input_ids)} rows; pass "
                "one per prompt or one per row"
            )
        tokens = input_ids[:, self._prompt_length :].cpu()
        questions = self._questions.repeat_interleave(len(tokens) // len(self._questions))
        steps = torch.full_like(questions, tokens.shape[1])
        tokens = torch.nn.functional.pad(tokens, (0, 1), value=-1)  # as rows are in our engine
        return self._edit(scores, Rows(questions, steps, tokens))


class RailCapLogitsProcessor(EditLogits):
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
        RailCap(n, suppression, successor)  # raises if a parameter is invalid
        if not trajectories:
            raise ValueError("RailCap: no trajectories; pass one per prompt or one per row")
        padded = pad_trajectories(trajectories, n)

        def edit_logits(logits: Tensor, rows: Rows) -> Tensor:
            rail = rail_tokens(padded, rows, n, successor)
            return suppress(logits.clone(), rail, suppression, warns=True)

        questions = torch.arange(len(trajectories), device="cpu")
        super().__init__(edit_logits, questions, prompt_length)
