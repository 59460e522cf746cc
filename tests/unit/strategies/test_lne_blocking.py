import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from zerogap.engine.decoder import Rows
from zerogap.strategies.base import Context
from zerogap.strategies.lne_blocking import LNEBlocking

ENTROPIES = st.lists(st.floats(0, 5), min_size=1, max_size=8)


def literal_num_blocks(entropy, threshold, beta):
    lne = math.fsum(entropy) / len(entropy)
    normalised = 1 - lne / beta
    return int(threshold * max(0.0, min(1.0, normalised)))


@given(
    entropies=st.lists(ENTROPIES, min_size=1, max_size=4),
    step=st.integers(0, 9),
    seed=st.integers(0, 100),
)
def test_the_first_steps_lose_their_most_probable_token(entropies, step, seed):
    num_rows = len(entropies)
    edit_logits = LNEBlocking().prepare(Context([[1]] * num_rows, entropies)).edit_logits
    logits = torch.randn(num_rows, 6, generator=torch.Generator().manual_seed(seed))
    rows = Rows(
        torch.arange(num_rows), torch.full((num_rows,), step), torch.zeros(num_rows, 10).long()
    )
    edited = edit_logits(logits.clone(), rows)
    for row, entropy in enumerate(entropies):
        expected = logits[row].tolist()
        if step < literal_num_blocks(entropy, 7, 2.0):
            expected[expected.index(max(expected))] = float("-inf")
        assert edited[row].tolist() == expected


def test_rounding_decides_about_the_last_blocked_step():
    context = Context([[1]], [[0.3]])  # 7 · 0.85 = 5.95
    rows = Rows(torch.tensor([0]), torch.tensor([5]), torch.zeros(1, 10).long())
    logits = torch.tensor([[1.0, 2.0]])
    floor = LNEBlocking(rounding="floor").prepare(context).edit_logits(logits.clone(), rows)
    assert floor.tolist() == [[1, 2]]
    nearest = LNEBlocking(rounding="nearest").prepare(context).edit_logits(logits.clone(), rows)
    assert nearest.tolist() == [[1, float("-inf")]]


def test_an_unknown_rounding_is_an_error():
    with pytest.raises(ValueError, match=r"'floor' or 'nearest' \(got 'up'\)"):
        LNEBlocking(rounding="up")
