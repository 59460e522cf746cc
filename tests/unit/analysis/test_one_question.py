"""The pieces of a response."""

from helpers import toy_tokenizers
from zerogap.analysis.one_question import spans


def test_pieces_are_the_same_with_the_tokenizers_of_both_libraries():
    tokenizer = toy_tokenizers.gpt_neox()
    trajectory, response = (
        [*tokenizer.encode(text), tokenizer.eos_token_id]
        for text in ("3 plus 4 is 7. The answer is 7.", "So 3 plus 4 is 7. It is 8.")
    )
    pieces = spans(tokenizer, trajectory, response, 4)
    assert pieces == spans(tokenizer.backend_tokenizer, trajectory, response, 4)
    assert "".join(text for text, _ in pieces) == "So 3 plus 4 is 7. It is 8."
    assert [mark for _, mark in pieces] == [False, True, False]
