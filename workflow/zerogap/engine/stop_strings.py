"""Stop strings as automata over tokens, so that a batch is checked without decoding its text."""

import numpy as np
from transformers import PreTrainedTokenizerBase

from zerogap.errors import InputError


class StopStrings:
    """Follows, for every row, how much of each stop string its text ends with.

    Args:
        stops: the strings at whose first occurrence a response ends; may be none.

    Raises:
        InputError: a stop string that is empty, or that no sequence of tokens can spell.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, stops: list[str]) -> None:
        texts = tokenizer.batch_decode(
            [[index] for index in range(len(tokenizer))], clean_up_tokenization_spaces=False
        )
        for stop in stops:
            if not stop:
                raise InputError("stop: an empty stop string ends every response at once")
            if missing := set(stop) - set("".join(texts)):
                raise InputError(
                    f"stop: '{stop}' can never occur: no token of this tokenizer holds "
                    f"{', '.join(sorted(map(repr, missing)))}"
                )
        tables = [_transitions(stop, texts) for stop in stops]
        self._tables = [np.array(table) for table in tables]  # (states, V)
        self._final = np.array([len(stop) for stop in stops], dtype=np.int64)

    def start(self, rows: int) -> np.ndarray:
        """The state before the first token, (rows, number of stop strings)."""
        return np.zeros((rows, len(self._tables)), dtype=np.int64)

    def advance(self, states: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """The states after one more token (R,) a row."""
        if not self._tables:
            return states
        # A model's vocabulary may be padded beyond the tokenizer's: such a token spells nothing.
        return np.stack(
            [
                np.where(tokens < table.shape[1], table[states[:, i], tokens % table.shape[1]], 0)
                for i, table in enumerate(self._tables)
            ],
            axis=1,
        )

    def reached(self, states: np.ndarray) -> np.ndarray:
        """Which rows (R,) have produced a stop string."""
        return (states == self._final).any(axis=1)


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
