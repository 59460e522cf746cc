import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import tokenizer

from zerogap.decoding.stops import StopStrings

TOKENIZER = tokenizer()


@settings(max_examples=150, deadline=None)
@given(
    text=st.text("aQ:b", max_size=12),
    stops=st.lists(st.sampled_from(["Q:", "aab", "QQ:"]), max_size=3),
)
def test_a_row_stops_where_its_text_first_holds_a_stop_string(text, stops):
    automata = StopStrings(TOKENIZER, stops, torch.device("cpu"))
    states = automata.start(1)
    for length, token in enumerate(TOKENIZER(text)["input_ids"], start=1):
        states = automata.advance(states, torch.tensor([token]))
        assert bool(automata.reached(states)[0]) == any(s in text[:length] for s in stops)
        if automata.reached(states)[0]:
            break


def test_a_token_may_hold_the_whole_string_or_end_in_its_middle():
    class Words:
        def __len__(self):
            return 4

        def batch_decode(self, ids, **_):
            return [["x", "yQ", ":z", "aQ:b"][i] for (i,) in ids]

    automata = StopStrings(Words(), ["Q:"], torch.device("cpu"))
    states = automata.advance(automata.start(3), torch.tensor([1, 3, 1]))
    assert automata.reached(states).tolist() == [False, True, False]
    states = automata.advance(states, torch.tensor([2, 0, 0]))
    assert automata.reached(states).tolist() == [True, True, False]
