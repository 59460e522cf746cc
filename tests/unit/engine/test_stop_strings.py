import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from helpers.tiny_models import tokenizer
from zerogap.engine.stop_strings import StopStrings
from zerogap.errors import InputError

TOKENIZER = tokenizer()


class Words:
    """A tokenizer of which every token is one of some texts."""

    def __init__(self, *texts):
        self.texts = texts

    def __len__(self):
        return len(self.texts)

    def decode(self, ids, **_):
        return "".join(self.texts[i] for i in ids)


@settings(max_examples=150, deadline=None)
@given(
    text=st.text("aQ:b", max_size=12),
    stops=st.lists(st.sampled_from(["Q:", "aab", "QQ:", "ab", "baQb"]), max_size=3),
)
def test_a_row_stops_where_its_text_first_contains_a_stop_string(text, stops):
    automaton = StopStrings(TOKENIZER, stops)
    states = automaton.start(1)
    for length, token in enumerate(TOKENIZER(text)["input_ids"], start=1):
        states = automaton.advance(states, np.array([token]))
        assert bool(automaton.reached(states)[0]) == any(s in text[:length] for s in stops)
        if automaton.reached(states)[0]:
            break


def test_a_token_may_contain_the_whole_stop_string_or_a_part_of_it():
    automaton = StopStrings(Words("x", "yQ", ":z", "aQ:b"), ["Q:"])
    states = automaton.advance(automaton.start(3), np.array([1, 3, 1]))
    assert automaton.reached(states).tolist() == [False, True, False]
    states = automaton.advance(states, np.array([2, 0, 0]))
    assert automaton.reached(states).tolist() == [True, True, False]


def test_tokens_beyond_the_tokenizers_spell_nothing():
    """A model's vocabulary may be padded."""
    automaton, (q, colon) = StopStrings(TOKENIZER, ["Q:"]), TOKENIZER("Q:")["input_ids"]
    states = automaton.start(3)
    for tokens in ([q, q, q + len(TOKENIZER)], [colon, colon + len(TOKENIZER), colon]):
        states = automaton.advance(states, np.array(tokens))
    assert automaton.reached(states).tolist() == [True, False, False]
    states = automaton.advance(states, np.full(3, colon))
    assert automaton.reached(states).tolist() == [True, True, False]


def test_tokens_that_a_tokenizer_has_gained_count():
    words = tokenizer()
    StopStrings(words, ["Q:"])
    words.add_tokens(["xQ:x"])
    automaton = StopStrings(words, ["Q:"])
    states = automaton.advance(automaton.start(1), np.array([len(words) - 1]))
    assert automaton.reached(states).tolist() == [True]


def test_a_space_that_the_decoder_drops_at_the_start_of_a_text_counts_within_it():
    """As SentencePiece tokenizers do, for example that of Llama 2."""
    words = {"<unk>": 0, "▁the": 1, "▁answer": 2, "the": 3, "answer": 4}
    sentence_piece = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    sentence_piece.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    wrapped = PreTrainedTokenizerFast(tokenizer_object=sentence_piece)
    assert wrapped.decode([1, 2]) == "the answer"
    automaton = StopStrings(wrapped, ["the answer"])
    states = automaton.start(2)
    for tokens in ([1, 1], [2, 4]):  # "the answer", "theanswer"
        states = automaton.advance(states, np.array(tokens))
    assert automaton.reached(states).tolist() == [True, False]


def test_a_stop_string_that_no_token_can_spell_is_an_error():
    with pytest.raises(InputError, match=r"'Q:' cannot be used, .* contains ':', 'Q'"):
        StopStrings(Words(*"0123456789"), ["12", "Q:"])


def test_long_stop_strings_are_found():
    stop = "ab" * 250 + "aa"
    automaton = StopStrings(TOKENIZER, [stop, "Q"])
    states = automaton.start(1)
    for token in TOKENIZER("ab" * 300 + "aa")["input_ids"]:
        assert not automaton.reached(states)[0]
        states = automaton.advance(states, np.array([token]))
    assert automaton.reached(states)[0]
