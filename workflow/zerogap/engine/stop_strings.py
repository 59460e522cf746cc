"""Stop strings as automata over tokens.

`transformers.StopStringCriteria` compares the end of every whole sequence at each step, on the
device; our loop keeps one small state per row on the host, which rows can take along when they
split, so a step costs one table look-up. The tests compare the two.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from zerogap.engine.decoder import IntArray
from zerogap.errors import InputError

MAX_CHARACTERS = 1000  # of all stop strings; their automata take time and memory in proportion


def check_stops(stops: Sequence[Any]) -> None:
    """Check what no tokenizer can change.

    Raises:
        InputError: a stop string is empty or not a text, or they are too long.
    """
    if not all(isinstance(stop, str) and stop for stop in stops):
        raise InputError(f"stop: must be non-empty texts (got {repr(stops)[:80]})")
    if (length := sum(map(len, stops))) > MAX_CHARACTERS:
        raise InputError(
            f"stop: has {length} characters; {MAX_CHARACTERS} in all are the most, and a few would "
            "do, such as the first line of what must not follow"
        )


class StopStrings:
    """Tracks how much of each stop string every row's text ends with.

    State k of a stop string's automaton means that the text ends with its first k characters; the
    last state, the whole string, is never left.

    Raises:
        InputError: see :func:`check_stops`; or no token contains a character of a stop string.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, stops: list[str]) -> None:
        check_stops(stops)
        texts = _token_texts(tokenizer, len(tokenizer)) if stops else []
        characters = set("".join(texts))
        for stop in stops:
            if missing := set(stop) - characters:
                raise InputError(
                    f"stop: {stop!r} cannot be used, because no token of this tokenizer contains "
                    f"{', '.join(sorted(map(repr, missing)))}; characters that it spells from "
                    "several tokens are not supported here"
                )
        # One table (states, V) per stop string: the state after each token.
        self._tables = [_transitions(stop, texts) for stop in stops]
        self._final = np.array([len(stop) for stop in stops], dtype=np.int64)

    def start(self, num_rows: int) -> IntArray:
        """The states before the first token, (num_rows, number of stop strings)."""
        return np.zeros((num_rows, len(self._tables)), dtype=np.int64)

    def advance(self, states: IntArray, tokens: IntArray) -> IntArray:
        """The states after one more token (R,) per row."""
        if not self._tables:
            return states
        # A model's vocabulary may be padded beyond the tokenizer's; such a token spells nothing.
        return np.stack(
            [
                np.where(tokens < table.shape[1], table[states[:, i], tokens % table.shape[1]], 0)
                for i, table in enumerate(self._tables)
            ],
            axis=1,
        )

    def reached(self, states: IntArray) -> NDArray[np.bool_]:
        """Which rows (R,) have produced a stop string."""
        reached: NDArray[np.bool_] = (states == self._final).any(axis=1)
        return reached


@functools.lru_cache(maxsize=1)  # a quarter of a second per call with 50,000 tokens
def _token_texts(tokenizer: PreTrainedTokenizerBase, num_tokens: int) -> list[str]:
    """The text that each of a tokenizer's tokens adds within a response.

    A decoder may drop the space at the start of a text (SentencePiece, as in Llama 2), so a token
    is decoded twice in a row and the text of the first occurrence is cut off.
    """
    # Decoded as a batch, the lists of all tokens would be in memory together, and Python's garbage
    # collector would take more time than the tokenizer.
    decode = functools.partial(tokenizer.decode, clean_up_tokenization_spaces=False)
    texts = []
    for index in range(num_tokens):
        once, twice = decode([index]), decode([index, index])
        texts.append(twice[len(once) :])
    return texts


def _transitions(stop: str, texts: list[str]) -> IntArray:
    """State after each token's text, for every start state (len(stop) + 1, V).

    The automaton of Knuth, Morris and Pratt works on characters: after a mismatch it continues with
    the longest beginning of the stop string that the text still ends with. A token is several
    characters, so its transition is that automaton run over the token's text.
    """
    numbers = {character: number for number, character in enumerate(set(stop), start=1)}
    automaton = np.zeros((len(stop) + 1, len(numbers) + 1), dtype=np.int64)  # column 0: any other
    shorter = 0  # state that the text would be in without its first character
    for state, character in enumerate(stop):
        automaton[state] = automaton[shorter]
        shorter = automaton[shorter, numbers[character]] if state else 0
        automaton[state, numbers[character]] = state + 1
    automaton[len(stop)] = len(stop)
    table = np.repeat(np.arange(len(stop) + 1)[:, None], len(texts), axis=1)
    for position in range(max(map(len, texts), default=0)):
        longer = [token for token, text in enumerate(texts) if len(text) > position]
        columns = [numbers.get(texts[token][position], 0) for token in longer]
        table[:, longer] = automaton[table[:, longer], columns]
    return table
