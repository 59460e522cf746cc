import copy
import random

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
    logits = cached.admit(questions[:2], copies=3)
    rows = [(q, []) for q in (0, 0, 0, 1, 1, 1)]
    torch.testing.assert_close(logits.repeat_interleave(3, 0), expected(rows))
    for step in range(40):
        tokens = [rng.randrange(VOCABULARY) for _ in rows]
        rows = [(q, [*own, token]) for (q, own), token in zip(rows, tokens, strict=True)]
        logits = cached.step(torch.tensor(tokens))
        torch.testing.assert_close(logits, expected(rows), rtol=1e-9, atol=1e-9)
        keep = {4: [0, 2, 4], 15: [1, 2, 3, 4], 30: [2]}.get(step)
        if keep:
            cached.keep(torch.tensor(keep))
            rows = [rows[i] for i in keep]
        if step in (9, 20):
            fresh = 2 if step == 9 else 3
            cached.admit([questions[fresh]], copies=2)
            rows += [(fresh, []), (fresh, [])]
    assert len(rows) == 1


def test_the_prefix_can_be_changed():
    cached = CachedModel(model("llama"))
    cached.prefill_prefix([1, 2, 3])
    cached.admit([[4]], copies=2)
    cached.prefill_prefix([5, 6])
    logits = cached.admit([[7]], copies=1)
    with torch.no_grad():
        expected = copy.deepcopy(model("llama"))(torch.tensor([[5, 6, 7]])).logits[:, -1]
    torch.testing.assert_close(logits, expected)
