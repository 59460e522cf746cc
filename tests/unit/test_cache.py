import copy
import random

import numpy as np
import pytest
import torch
from tiny import ARCHITECTURES, VOCABULARY, model

from zerogap.decoding.cache import CachedModel


@pytest.mark.parametrize("family", ARCHITECTURES)
def test_ragged_rows_see_what_one_row_without_sharing_sees(family):
    """Every step's logits, while questions of different length come and rows of them leave."""
    rng = random.Random(family)
    cached = CachedModel(model(family))
    alone = model(family)
    prefix = [rng.randrange(VOCABULARY) for _ in range(20)]
    questions = [[rng.randrange(VOCABULARY) for _ in range(n)] for n in (3, 14, 7, 1)]

    def expected(rows):
        with torch.no_grad():
            return torch.stack(
                [
                    alone(torch.tensor([prefix + questions[q] + own])).logits[0, -1]
                    for q, own in rows
                ]
            )

    cached.prefill_prefix(prefix)
    logits = cached.admit(questions[:2])
    cached.arrange(np.array([0, 1, 0, 0, 1, 1]))
    rows, seen = [(q, []) for q in (0, 1, 0, 0, 1, 1)], set()
    torch.testing.assert_close(logits, expected(rows[:2]))
    for step in range(40):
        tokens = [rng.randrange(VOCABULARY) for _ in rows]
        rows = [(q, [*own, token]) for (q, own), token in zip(rows, tokens, strict=True)]
        logits = cached.step(torch.tensor(tokens))
        torch.testing.assert_close(logits, expected(rows), rtol=1e-9, atol=1e-9)
        seen |= {q for q, _ in rows}
        # Rows part, end and change places; at times all of them move.
        count = max(5, len(rows) + rng.choice([-1, 0, 0, 1]))
        order = [i if i < len(rows) else rng.randrange(len(rows)) for i in range(count)]
        if step % 3 == 0:
            order[rng.randrange(count)] = rng.randrange(len(rows))
        if step % 8 == 0:
            rng.shuffle(order)
        cached.arrange(np.array(order))
        rows = [rows[i] for i in order]
        if step in (9, 20, 30):
            fresh = {9: [2], 20: [3, 0], 30: [1]}[step]
            cached.admit([questions[q] for q in fresh])
            rows += [(q, []) for q in fresh]
    assert seen == {0, 1, 2, 3}


def test_the_prefix_can_be_changed():
    cached = CachedModel(model("llama"))
    cached.prefill_prefix([1, 2, 3])
    cached.admit([[4]])
    cached.prefill_prefix([5, 6])
    logits = cached.admit([[7]])
    with torch.no_grad():
        expected = copy.deepcopy(model("llama"))(torch.tensor([[5, 6, 7]])).logits[:, -1]
    torch.testing.assert_close(logits, expected)
