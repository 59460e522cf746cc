"""Stop strings as an automaton over tokens.

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

MAX_CHARACTERS = 1000  # of all stop strings; the automaton takes time and memory in proportion


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
    """Tracks how much of a stop string every row's text ends with.

    A state stands for the longest beginning of a stop string that the text ends with. The last one,
    which is never left, means that the text contains a whole stop string.

    Raises:
        InputError: see :func:`check_stops`; or no token contains a character of a stop string.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, stops: list[str]) -> None:
        check_stops(stops)
        self._table = _table(tokenizer, tuple(stops), len(tokenizer))

    def start(self, num_rows: int) -> IntArray:
        """The states (num_rows,) before the first token."""
        return np.zeros(num_rows, dtype=np.int64)

    def advance(self, states: IntArray, tokens: IntArray) -> IntArray:
        """The states after one more token (R,) per row."""
        last = self._table.shape[1] - 1
        after: IntArray = self._table[states, np.minimum(tokens, last)].astype(np.int64)
        return after

    def reached(self, states: IntArray) -> NDArray[np.bool_]:
        """Which rows (R,) have produced a stop string."""
        reached: NDArray[np.bool_] = states == len(self._table) - 1
        return reached


@functools.lru_cache(maxsize=1)  # seconds with 262,144 tokens, for every chunk of samples
def _table(
    tokenizer: PreTrainedTokenizerBase, stops: tuple[str, ...], num_tokens: int
) -> NDArray[np.int16]:
    texts = _token_texts(tokenizer, num_tokens) if stops else []
    characters = set("".join(texts))
    for stop in stops:
        if missing := set(stop) - characters:
            raise InputError(
                f"stop: {stop!r} cannot be used, because no token of this tokenizer contains "
                f"{', '.join(sorted(map(repr, missing)))}; characters that it spells from "
                "several tokens are not supported here"
            )
    # A model's vocabulary may be padded beyond the tokenizer's: such a token spells nothing.
    return _transitions(stops, [*texts, ""])


@functools.lru_cache(maxsize=1)  # other stop strings need the same texts
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


def _transitions(stops: Sequence[str], texts: list[str]) -> NDArray[np.int16]:
    """State after each token's text, for every start state (states, V).

    The automaton of Aho and Corasick works on characters: after a mismatch it continues with the
    longest beginning of a stop string that the text still ends with. A token is several characters,
    so its transition is that automaton run over the token's text.
    """
    numbers = {character: number for number, character in enumerate(set("".join(stops)), start=1)}
    beginnings = {"", *(stop[:length] for stop in stops for length in range(len(stop)))}
    states = {text: state for state, text in enumerate(sorted(beginnings, key=len))}
    # Column 0: any other character. At most MAX_CHARACTERS + 2 states.
    automaton = np.zeros((len(states) + 1, len(numbers) + 1), dtype=np.int16)
    for text, state in states.items():
        endings = (text[start:] for start in range(1, len(text)))
        automaton[state] = automaton[next((states[end] for end in endings if end in states), 0)]
        for character, number in numbers.items():
            if (longer := text + character).endswith(tuple(stops)):
                automaton[state, number] = len(states)
            elif longer in states:
                automaton[state, number] = states[longer]
    automaton[len(states)] = len(states)
    start = np.arange(len(automaton), dtype=np.int16)
    table = np.repeat(start[:, None], len(texts), axis=1)
    tokens = list(range(len(texts)))
    for position in range(max(map(len, texts))):
        tokens = [token for token in tokens if len(texts[token]) > position]
        columns = [numbers.get(texts[token][position], 0) for token in tokens]
        table[:, tokens] = automaton[table[:, tokens], columns]
    return table
