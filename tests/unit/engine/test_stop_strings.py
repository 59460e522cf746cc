import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.tiny_models import tokenizer
from zerogap.engine.stop_strings import StopStrings
from zerogap.errors import InputError

TOKENIZER = tokenizer()


@settings(max_examples=150, deadline=None)
@given(
    text=st.text("aQ:b", max_size=12),
    stops=st.lists(st.sampled_from(["Q:", "aab", "QQ:"]), max_size=3),
)
def test_a_row_stops_where_its_text_first_holds_a_stop_string(text, stops):
    automata = StopStrings(TOKENIZER, stops)
    states = automata.start(1)
    for length, token in enumerate(TOKENIZER(text)["input_ids"], start=1):
        states = automata.advance(states, np.array([token]))
        assert bool(automata.reached(states)[0]) == any(s in text[:length] for s in stops)
        if automata.reached(states)[0]:
            break


def test_a_token_may_hold_the_whole_string_or_end_in_its_middle():
    class Words:
        def __len__(self):
            return 4

        def batch_decode(self, ids, **_):
            return [["x", "yQ", ":z", "aQ:b"][i] for (i,) in ids]

    automata = StopStrings(Words(), ["Q:"])
    states = automata.advance(automata.start(3), np.array([1, 3, 1]))
    assert automata.reached(states).tolist() == [False, True, False]
    states = automata.advance(states, np.array([2, 0, 0]))
    assert automata.reached(states).tolist() == [True, True, False]


def test_a_string_that_no_token_can_spell_is_refused():
    class Digits:
        def __len__(self):
            return 10

        def batch_decode(self, ids, **_):
            return [str(i) for (i,) in ids]

    with pytest.raises(InputError, match="'Q:' can never occur: no token.* holds ':', 'Q'"):
        StopStrings(Digits(), ["12", "Q:"])
