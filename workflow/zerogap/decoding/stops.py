"""Stop strings as automata over tokens, so that a batch is checked without decoding its text."""

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from zerogap.errors import InputError


class StopStrings:
    """Follows, for every row, how much of each stop string its text ends with.

    Args:
        stops: the strings at whose first occurrence a response ends; may be none.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, stops: list[str], device: torch.device
    ) -> None:
        texts = tokenizer.batch_decode(
            [[index] for index in range(len(tokenizer))], clean_up_tokenization_spaces=False
        )
        for stop in stops:
            if not stop:
                raise InputError("decoding.stop: an empty stop string ends every response at once")
        tables = [_transitions(stop, texts) for stop in stops]
        self._tables = [torch.tensor(table, device=device) for table in tables]  # (states, V)
        self._final = [len(stop) for stop in stops]

    def start(self, rows: int) -> Tensor:
        """The state before the first token, (rows, number of stop strings)."""
        device = self._tables[0].device if self._tables else None
        return torch.zeros(rows, len(self._tables), dtype=torch.long, device=device)

    def advance(self, states: Tensor, tokens: Tensor) -> Tensor:
        """The states after one more token (R,) a row."""
        if not self._tables:
            return states
        return torch.stack(
            [
                table[states[:, i], tokens.clamp(max=table.shape[1] - 1)]
                for i, table in enumerate(self._tables)
            ],
            dim=1,
        )

    def reached(self, states: Tensor) -> Tensor:
        """Which rows (R,) have produced a stop string."""
        final = torch.tensor(self._final, device=states.device)
        return (states == final).any(dim=1)


def _transitions(stop: str, texts: list[str]) -> list[list[int]]:
    """Knuth-Morris-Pratt, a character at a time, tabulated for whole tokens."""
    step: list[dict[str, int]] = []
    for state in range(len(stop)):
        step.append({})
        for character in set(stop):
            seen = stop[:state] + character
            step[state][character] = next(
                length for length in range(len(seen), -1, -1) if seen.endswith(stop[:length])
            )
    table = []
    for start in range(len(stop) + 1):
        row = []
        for text in texts:
            state = start
            for character in text:
                if state == len(stop):
                    break
                state = step[state].get(character, 0)
            row.append(state)
        table.append(row)
    return table
