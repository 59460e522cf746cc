import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from zerogap.engine.decoder import Rows
from zerogap.strategies.base import Context
from zerogap.strategies.lne_blocking import LNEBlocking

ENTROPIES = st.lists(st.floats(0, 5), min_size=1, max_size=8)


def literal_strength(entropy, threshold, beta):
    lne = math.fsum(entropy) / len(entropy)
    normalised = 1 - lne / beta
    return int(threshold * max(0.0, min(1.0, normalised)))


@given(
    entropies=st.lists(ENTROPIES, min_size=1, max_size=4),
    step=st.integers(0, 9),
    seed=st.integers(0, 100),
)
def test_the_first_steps_lose_their_arg_max(entropies, step, seed):
    edit = LNEBlocking().prepare(Context([[1]] * len(entropies), entropies)).edit
    logits = torch.randn(len(entropies), 6, generator=torch.Generator().manual_seed(seed))
    rows = Rows(
        torch.arange(len(entropies)),
        torch.full((len(entropies),), step),
        torch.zeros(len(entropies), 10).long(),
    )
    ours = edit(logits.clone(), rows)
    for row, entropy in enumerate(entropies):
        expected = logits[row].tolist()
        if step < literal_strength(entropy, 7, 2.0):
            expected[expected.index(max(expected))] = float("-inf")
        assert ours[row].tolist() == expected


def test_rounding_is_a_choice():
    context = Context([[1]], [[0.3]])  # 7 · 0.85 = 5.95
    rows = Rows(torch.tensor([0]), torch.tensor([5]), torch.zeros(1, 10).long())
    logits = torch.tensor([[1.0, 2.0]])
    assert LNEBlocking(rounding="floor").prepare(context).edit(logits, rows).tolist() == [[1, 2]]
    blocked = LNEBlocking(rounding="nearest").prepare(context).edit(logits, rows)
    assert blocked.tolist() == [[1, float("-inf")]]
    with pytest.raises(ValueError, match="rounding"):
        LNEBlocking(rounding="up").prepare(context)
