import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.tiny_models import tokenizer
from zerogap.analysis.rail import rail_steps, replay
from zerogap.data.token_kinds import text_kind, token_kinds
from zerogap.engine.decoder import Rows
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.strategies.base import Context
from zerogap.strategies.railcap import RailCap

VOCABULARY = 4
tokens = st.lists(st.integers(0, VOCABULARY - 1), max_size=14)


@settings(max_examples=300, deadline=None)
@given(trajectory=tokens.filter(bool), response=tokens, n=st.integers(1, 4))
def test_the_steps_on_the_rail_are_those_at_which_railcap_intervenes(trajectory, response, n):
    """A ban changes the logits at every intervention, and of the rail token alone."""
    edit_logits = RailCap(n=n, suppression="ban").prepare(Context([trajectory], [])).edit_logits
    expected = []
    for step, drawn in enumerate(response):
        rows = Rows(torch.tensor([0]), torch.tensor([step]), torch.tensor([response]))
        logits = edit_logits(torch.zeros(1, VOCABULARY), rows)[0]
        expected += [(step, token, drawn) for token in logits.isinf().nonzero()[:, 0].tolist()]
    assert list(rail_steps(trajectory, response, n)) == expected


def tables():
    greedy = [("a", [1, 2, 3, 9], [0.1, 0.2, 0.3, 0.4]), ("b", [5, 6], [1.0, 0.5])]
    greedy_table = pd.DataFrame(greedy, columns=["question_id", "token_ids", "entropy"])
    rows = [("b", [6, 5, 6]), *[("a", [1, 2, 3, 9])] * 2, ("a", [1, 2, 2])]
    samples = pd.DataFrame(rows, columns=["question_id", "token_ids"])
    return samples, greedy_table, pd.Series({"a": True, "b": False})


def kind(token):
    return {9: "end", 6: "operator"}.get(token, "digit")


def test_replay_counts_rail_tokens_met_and_drawn_by_kind(tmp_path):
    table = replay("railcap", *tables(), n=1, kind=kind)
    parquet.write(tmp_path / "rail.parquet", table, "rail", {})
    rows = table.set_index("question_id")
    a = rows.loc["a"]
    assert (a.responses, a.leaked, a.n_responses, a.n_distinct, a.n_steps) == (
        "railcap", True, 3, 2, 11,
    )  # fmt: skip
    # Twice 1 → 2, 2 → 3, 3 → 9 along the trajectory; once 1 → 2 and then 2 where 3 was to come.
    assert (a.rail_digit, a.rail_end, a.drawn_digit, a.drawn_end) == (2 * 2 + 2, 2, 2 * 2 + 1, 2)
    assert (a.rail_word, a.rail_operator) == (0, 0)
    assert (a.greedy_steps, a.greedy_entropy) == (4, pytest.approx(1.0))
    b = rows.loc["b"]
    assert (b.leaked, b.rail_operator, b.drawn_operator, b.n_steps) == (False, 1, 1, 3)


def test_a_question_without_a_trajectory_is_rejected():
    samples, greedy_table, leaked = tables()
    with pytest.raises(InputError, match="'b' is not in the greedy table"):
        replay("clean", samples, greedy_table[:1], leaked, n=1, kind=kind)


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
