import copy
import random

import numpy as np
import pytest
import torch
from tiny import FAMILIES, VOCABULARY, model

from zerogap.decoding.cache import CachedModel


@pytest.mark.parametrize("family", FAMILIES)
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
    cached.arrange(np.array([0, 0, 1, 1]), np.array([2, 3, 4, 5]), 6)
    rows, seen = [(q, []) for q in (0, 1, 0, 0, 1, 1)], set()
    torch.testing.assert_close(logits, expected(rows[:2]))
    for step in range(40):
        tokens = [rng.randrange(VOCABULARY) for _ in rows]
        rows = [(q, [*own, token]) for (q, own), token in zip(rows, tokens, strict=True)]
        logits = cached.step(torch.tensor(tokens))
        torch.testing.assert_close(logits, expected(rows), rtol=1e-9, atol=1e-9)
        # Rows part and end anywhere; a row that stays need not keep its place.
        count = max(5, len(rows) + rng.choice([-1, 0, 0, 1]))
        target = list(range(len(rows), count))
        if step % 3 == 0:
            target = sorted({*target, rng.randrange(min(count, len(rows)))})
        source = [rng.choice([i for i in range(len(rows)) if i not in target]) for _ in target]
        cached.arrange(np.array(source, dtype=int), np.array(target, dtype=int), count)
        moved = dict(zip(target, source, strict=True))
        rows = [rows[moved.get(place, place)] for place in range(count)]
        seen |= {q for q, _ in rows}
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
