"""The pieces of a response."""

import pandas as pd
import pytest

from helpers import toy_tokenizers
from zerogap.analysis import one_question
from zerogap.analysis.one_question import spans
from zerogap.errors import InputError
from zerogap.io import parquet


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


def test_a_character_of_several_tokens_is_in_one_piece():
    """Whatever part of the response the trajectory shares."""
    tokenizer = toy_tokenizers.gpt_neox()
    text = "He has 🍎🍎 and 日本語."
    response = [*tokenizer.encode(text), tokenizer.eos_token_id]
    for first in range(len(response) - 2):
        for last in range(first + 2, len(response)):
            pieces = spans(tokenizer, [*response[first:last], 0], response, 1)
            assert "".join(piece for piece, _ in pieces) == text


def test_a_question_without_a_greedy_response_is_one_line(tmp_path):
    none = pd.DataFrame(columns=parquet.CONTRACTS["greedy"].names)
    parquet.write(tmp_path / "greedy.parquet", none, "greedy", {})
    with pytest.raises(InputError, match="made from other questions"):
        one_question.greedy(tmp_path, {"question_id": "test-0001"})
