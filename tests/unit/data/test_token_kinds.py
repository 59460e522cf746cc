import pytest

from helpers.tiny_models import tokenizer
from zerogap.data.token_kinds import text_kind, token_kinds


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("4", "digit"), (" 20", "digit"), ("3rd", "digit"), ("$5", "digit"),
        ("+", "operator"), (" =", "operator"), (">>", "operator"), ("$", "operator"),
        ("−", "operator"), ("×", "operator"),
        (" ", "space"), ("\n\n", "space"), ("\t", "space"), ("", "space"),
        (" apples", "word"), (".", "word"), (",", "word"), ("x", "word"), ("\ufffd", "word"),
        ("=a", "word"),
    ],
)  # fmt: skip
def test_a_token_has_the_first_kind_that_applies(text, kind):
    assert text_kind(text) == kind


def test_the_end_token_is_recognised_by_its_id():
    words = tokenizer()
    kind = token_kinds(words.decode, [words.eos_token_id])
    assert kind(words.eos_token_id) == "end"
    assert [kind(token) for token in words("a1 +\n")["input_ids"]] == [
        "word", "digit", "space", "operator", "space",
    ]  # fmt: skip
