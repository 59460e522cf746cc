import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from zerogap.engine import cpu_kernels, drawing
from zerogap.engine.drawing import draw, entropy, most_likely
from zerogap.engine.randomness import uniforms

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
    token = int(draw(row, torch.tensor([uniform], dtype=torch.float64), 0.7))
    probabilities = (row.double() / 0.7).softmax(-1)[0]
    assert probabilities[token] > 0
    below = probabilities[:token].sum()
    assert below - 1e-5 <= uniform <= below + probabilities[token] + 1e-5


@ALL_DTYPES
def test_draws_follow_the_distribution(dtype):
    """Chi-square of 40,000 draws against softmax, over a vocabulary of several blocks."""
    torch.manual_seed(0)
    logits = (torch.randn(1, 150) * 2).to(dtype)
    uniform = torch.from_numpy(uniforms(1, "s", "q", range(1), 40_000)[0])
    drawn = draw(logits, uniform, 0.7, row=torch.zeros(40_000, dtype=torch.long))
    expected = (logits[0].double() / 0.7).softmax(-1) * 40_000
    observed = torch.bincount(drawn, minlength=150).double()
    likely = expected > 5
    statistic = ((observed - expected) ** 2 / expected)[likely].sum()
    freedom = int(likely.sum()) - 1
    assert abs(statistic - freedom) < 4 * (2 * freedom) ** 0.5
    assert observed[~likely].sum() < 2 * expected[~likely].sum() + 20


@ALL_DTYPES
def test_samples_of_a_shared_row_draw_as_from_rows_of_their_own(dtype):
    logits = torch.randn(5, 130).to(dtype)
    row = torch.tensor([4, 0, 0, 3, 4, 1, 1, 1])
    uniform = torch.rand(8, dtype=torch.float64)
    assert draw(logits, uniform, 0.7, row=row).equal(draw(logits[row], uniform, 0.7))


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_compiled_kernel_draws_on_a_cpu_unless_switched_off(dtype, monkeypatch):
    monkeypatch.setattr(cpu_kernels, "draw", lambda logits, uniform, temperature, row: "compiled")
    logits, uniform = torch.zeros(1, 5, dtype=dtype), torch.tensor([0.5], dtype=torch.float64)
    assert draw(logits, uniform, 1.0) == "compiled"
    assert draw(logits.double(), uniform, 1.0) == 2
    assert draw(logits, uniform, 1.0, top_p=0.5) != "compiled"
    monkeypatch.setenv("ZEROGAP_CPU_KERNELS", "0")
    assert draw(logits, uniform, 1.0) == 2
