import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers.decoding import rows_of
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
    edited = edit_logits(logits.clone(), rows_of([[0] * step] * num_rows))
    for row, entropy in enumerate(entropies):
        expected = logits[row].tolist()
        if step < literal_num_blocks(entropy, 7, 2.0):
            expected[expected.index(max(expected))] = float("-inf")
        assert edited[row].tolist() == expected


@pytest.mark.parametrize(
    ("threshold", "entropy", "floor", "nearest"),
    [
        (7, [0.3], 5, 6),  # 5.95
        (5, [0.5, 1.5], 2, 3),  # 2.5, a half is rounded up
        (7, [1.0], 3, 4),  # 3.5
        (7, [0.85], 4, 4),  # 4.025
        (7, [0.0], 7, 7),
        (7, [2.0], 0, 0),
        (7, [9.0], 0, 0),
        (0, [0.0], 0, 0),
    ],
)
def test_rounding_decides_about_the_last_blocked_step(threshold, entropy, floor, nearest):
    for rounding, expected in (("floor", floor), ("nearest", nearest)):
        strategy = LNEBlocking(threshold, rounding=rounding)
        edit_logits = strategy.prepare(Context([[1]], [entropy])).edit_logits
        logits = edit_logits(
            torch.tensor([[1.0, 2.0]] * 10),
            Rows(torch.zeros(10).long(), torch.arange(10), torch.zeros(10, 10).long()),
        )
        assert logits.isneginf().tolist() == [[False, step < expected] for step in range(10)]
