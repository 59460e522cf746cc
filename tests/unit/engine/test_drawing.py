import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from zerogap.engine import drawing
from zerogap.engine.drawing import draw, entropy, most_likely, uniforms

ALL_DTYPES = pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16]
)  # the first in plain PyTorch, the others compiled


@ALL_DTYPES
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-8, 8), min_size=2, max_size=200),
    st.floats(0, 1, exclude_max=True),
    st.integers(0, 5),
)
def test_draw_inverts_the_cumulative_distribution(dtype, logits, uniform, banned):
    row = torch.tensor([logits], dtype=dtype)
    row[0, : min(banned, len(logits) - 1)] = float("-inf")
    token = int(draw(row, torch.tensor([uniform]).double(), 0.7, 1.0, torch.tensor([0])))
    probabilities = (row.double() / 0.7).softmax(-1)[0]
    assert probabilities[token] > 0
    below = probabilities[:token].sum()
    assert below - 1e-5 <= uniform <= below + probabilities[token] + 1e-5


@ALL_DTYPES
def test_a_uniform_on_the_edge_of_two_tokens_draws_the_second(dtype):
    """Also on the edge of two blocks of tokens; a token without probability is none of them."""
    logits = torch.zeros(1, 512, dtype=dtype)
    logits[0, 1::2] = float("-inf")
    uniform = torch.arange(256).double() / 256
    drawn = draw(logits, uniform, 1.0, 1.0, torch.zeros(256).long())
    assert drawn.tolist() == list(range(0, 512, 2))


@pytest.mark.parametrize("top_p", [1.0, 0.7])
def test_draws_in_chunks_of_rows_equal_draws_at_once(top_p, monkeypatch):
    logits = torch.randn(7, 130, dtype=torch.float64)
    logits[2] = float("nan")
    row = torch.tensor([6, 0, 0, 3, 6, 1, 1, 1, 2])  # none draws from 4 and 5
    uniform = torch.rand(9, dtype=torch.float64)
    whole = draw(logits, uniform, 0.7, top_p, row)
    for rows in (1, 2, 3, 4):
        monkeypatch.setattr(drawing, "CPU_LOGITS_CHUNK", rows * 130)
        assert draw(logits, uniform, 0.7, top_p, row).equal(whole)
    assert whole[8] == -1


@pytest.mark.parametrize(("top_p", "kept"), [(0.4, [3]), (0.7, [1, 3]), (0.9, [1, 2, 3])])
def test_top_p_draws_from_the_smallest_set_of_likely_tokens_that_reaches_p(top_p, kept):
    logits = torch.tensor([[0.05, 0.3, 0.15, 0.5]]).log()
    uniform = (torch.arange(1000).double() + 0.5) / 1000
    drawn = draw(logits, uniform, 1.0, top_p, torch.zeros(1000, dtype=torch.long))
    assert drawn.unique().tolist() == kept
    weights, counts = logits.exp()[0, kept], torch.bincount(drawn)[kept]
    torch.testing.assert_close(counts / 1000, weights / weights.sum(), atol=0.002, rtol=0)


def test_most_likely_tokens_and_their_entropy():
    logits = torch.tensor([[0.5, 0.25, 0.25], [0.0, 0.0, 1.0], [1.0, float("nan"), 0.0]]).log()
    assert most_likely(logits).tolist() == [0, 2, -1]
    expected = [1.5 * torch.tensor(2.0).log(), 0.0]
    torch.testing.assert_close(entropy(logits[:2]), torch.tensor(expected))


@given(st.integers(0, 2**40), st.text(max_size=5), st.text(max_size=8))
def test_a_draw_depends_only_on_its_sample_and_step(seed, stream, question):
    whole = uniforms(seed, stream, question, range(6), 20)
    assert whole.shape == (6, 20)
    assert ((whole >= 0) & (whole < 1)).all()
    np.testing.assert_array_equal(uniforms(seed, stream, question, range(4, 6), 7), whole[4:, :7])


def test_samples_questions_streams_and_seeds_are_independent():
    reference = uniforms(0, "s", "q", range(2), 2000)
    assert len(np.unique(reference)) == reference.size  # none has those of another, shifted
    others = [
        reference[1],
        uniforms(1, "s", "q", range(1), 2000)[0],
        uniforms(0, "t", "q", range(1), 2000)[0],
        uniforms(0, "s", "p", range(1), 2000)[0],
    ]
    for other in others:
        assert abs(np.corrcoef(reference[0], other)[0, 1]) < 0.08
    assert abs(reference.mean() - 0.5) < 0.02


def test_the_draws_of_a_seed_never_change():
    """They are part of the protocol: another version must draw the same samples."""
    numbers = uniforms(0, "strategies", "test-0000", range(1), 3)[0]
    expected = [0.9083261986805855, 0.19846952299025933, 0.5396394788584458]
    np.testing.assert_allclose(numbers, expected, rtol=0, atol=1e-15)
