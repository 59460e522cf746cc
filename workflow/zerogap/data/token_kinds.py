"""Kinds of tokens: digit, operator, space, word and end, by what a token decodes to.

A token with several kinds of characters has the first kind that applies:

- end: an end token;
- digit: it contains a digit ("4", " 20", "3rd");
- space: nothing but white space, line breaks included, or nothing at all;
- operator: nothing but signs of arithmetic and white space (" +", "=", ">>", "$");
- word: everything else, punctuation and parts of characters included.
"""

import re
from collections.abc import Callable, Collection
from functools import cache

from zerogap.io import parquet

KINDS = parquet.TOKEN_KINDS

_DIGIT = re.compile(r"\d")
_OPERATOR = re.compile(r"[-+−*×·/÷=≈<>()%^$€£\s]+")


def text_kind(text: str) -> str:
    """Return the kind of a token that is not an end token."""
    if _DIGIT.search(text):
        return "digit"
    if not text.strip():
        return "space"
    return "operator" if _OPERATOR.fullmatch(text) else "word"


def token_kinds(
    decode: Callable[[list[int]], str], end_tokens: Collection[int]
) -> Callable[[int], str]:
    """Return a function from token ids to kinds; `decode` keeps special tokens."""

    @cache
    def kind(token: int) -> str:
        return "end" if token in end_tokens else text_kind(decode([token]))

    return kind
