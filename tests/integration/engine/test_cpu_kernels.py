import itertools

import numba
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.models.llama.modeling_llama import LlamaRMSNorm, apply_rotary_pos_emb

from zerogap.engine.drawing import draw
from zerogap.engine.kernels import cpu_own_tokens, cpu_rows, row_kernels


def attention_case(rows, heads, groups, prefix, dtype, size=40):
    """Arguments of `attend`, and its result by one softmax over all keys in float64."""
    torch.manual_seed(0)
    width, questions, cells = 19, 3, rows // 3 + 2
    query = (torch.randn(rows, heads * groups, size) * (40 / size) ** 0.5).to(dtype)
    of_prefix = torch.randn(heads, rows * groups, size).to(dtype)
    of_question = torch.randn(questions, heads, cells * groups, size).to(dtype)
    key, value = (torch.randn(rows + 2, width, heads, size).to(dtype) for _ in range(2))
    num_generated = torch.randint(1, width + 1, (rows,))
    cell = torch.randperm(questions * cells)[:rows]
    to_prefix = torch.randn(heads, rows * groups)
    to_question = torch.randn(questions, heads, cells * groups)
    if not prefix:
        to_prefix.fill_(float("-inf"))
    expected = torch.empty(rows, heads * groups, size).double()
    for row, head in itertools.product(range(rows), range(heads * groups)):
        read, member = divmod(head, groups)
        question, in_question = divmod(int(cell[row]), cells)
        in_prefix, in_question = row * groups + member, in_question * groups + member
        own_key, own_value = (
            part[row, : num_generated[row], read].double() for part in (key, value)
        )
        others = [to_prefix[read, in_prefix], to_question[question, read, in_question]]
        scores = torch.cat([own_key @ query[row, head].double(), torch.stack(others).double()])
        outs = [of_prefix[read, in_prefix], of_question[question, read, in_question]]
        values = torch.cat([own_value, torch.stack(outs).double()])
        expected[row, head] = scores.softmax(0) @ values
    arguments = (
        query,
        (key, value),
        num_generated,
        (of_prefix, to_prefix),
        (of_question, to_question),
        cell,
    )
    return arguments, expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("rows", "heads", "groups", "size", "prefix"),
    [
        (1, 3, 1, 40, False), (1, 3, 1, 40, True), (70, 2, 3, 40, False), (70, 2, 3, 40, True),
        (3, 2, 7, 64, True), (3, 2, 8, 80, True), (3, 2, 8, 128, True), (3, 2, 1, 256, True),
        (3, 2, 2, 512, True), (3, 2, 3, 2, True), (3, 2, 2, 7, True),
    ],
)  # fmt: skip
def test_attention_is_one_softmax_over_all_keys(rows, heads, groups, size, prefix, dtype):
    arguments, expected = attention_case(rows, heads, groups, prefix, dtype, size)
    out = cpu_own_tokens.attend(*arguments)
    assert out.dtype == dtype
    # Sums are float32 in both, and rounded once.
    error = 2e-6 if size == 40 else 1e-5
    rounding = 2**-8 if dtype == torch.bfloat16 else 0
    torch.testing.assert_close(out.double(), expected, rtol=error + rounding, atol=error)


@pytest.mark.parametrize("nan", [float("nan"), -float("nan")])
def test_a_nan_among_a_rows_own_keys_reaches_its_result_alone(nan):
    arguments, _ = attention_case(3, 2, 2, True, torch.bfloat16)
    _, (key, _), num_generated, *_ = arguments
    key[1, num_generated[1] - 1] = nan
    out = cpu_own_tokens.attend(*arguments)
    assert out.isnan().all(-1).all(-1).tolist() == [False, True, False]


def test_a_rows_result_is_independent_of_threads_and_other_rows(threads):
    arguments, _ = attention_case(100, 2, 2, True, torch.bfloat16)
    logits, uniform = torch.randn(100, 300).bfloat16(), torch.rand(100, dtype=torch.float64)
    row = torch.randperm(100)
    threads(1)
    whole, drawn = cpu_own_tokens.attend(*arguments), cpu_rows.draw(logits, uniform, 0.7, row)
    for count in (2, 3, 5):
        threads(count)
        assert cpu_own_tokens.attend(*arguments).equal(whole)
        assert cpu_rows.draw(logits, uniform, 0.7, row).equal(drawn)
    query, own, num_generated, prefix, question, cell = arguments
    some = torch.tensor([41, 7, 99])
    own = tuple(part[some] for part in own)
    # Two query heads read the same keys.
    prefix = tuple(part[:, (2 * some[:, None] + torch.arange(2)).flatten()] for part in prefix)
    few = cpu_own_tokens.attend(query[some], own, num_generated[some], prefix, question, cell[some])
    assert few.equal(whole[some])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 70), st.sampled_from([1e-5, 0.1]))
def test_a_norm_is_rounded_like_that_of_transformers(seed, size, epsilon):
    generator = torch.Generator().manual_seed(seed)
    hidden = (torch.randn(3, 2, size, generator=generator) * 5).bfloat16()
    norm = LlamaRMSNorm(size, eps=epsilon).bfloat16()
    norm.weight.data = torch.randn(size, generator=generator).bfloat16()
    normed = cpu_rows.rms_norm(hidden, norm.weight.detach(), epsilon)
    # Sums in another order may move a value to the next bfloat16 before it is multiplied.
    torch.testing.assert_close(normed, norm(hidden).detach(), rtol=2**-7, atol=0)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 70), st.floats(0.1, 60))
def test_gated_silu_is_exact_up_to_one_rounding(seed, size, spread):
    generator = torch.Generator().manual_seed(seed)
    joined = (torch.randn(3, 2, 2 * size, generator=generator) * spread).bfloat16()
    gate, up = joined.double().split(size, dim=-1)
    expected = torch.nn.functional.silu(gate) * up
    out = cpu_rows.gated_silu(joined)
    assert out.shape == (3, 2, size)
    # Numbers below the smallest normal one lose digits; exp(-87) is taken as 0.
    torch.testing.assert_close(out.double(), expected, rtol=2**-8 + 1e-6, atol=1e-34)


@pytest.mark.parametrize("size", [2, 10, 64])
def test_heads_are_rotated_up_to_one_rounding_and_the_others_stay(size):
    generator = torch.Generator().manual_seed(size)
    heads = torch.randn(5, 3, 4, size, generator=generator).bfloat16()
    cos, sin = torch.randn(2, 5, 3, size, generator=generator).bfloat16()
    rotated = heads.clone()
    cpu_rows.rotate(rotated, cos, sin, 3)
    query, _ = apply_rotary_pos_emb(
        *(part.double() for part in (heads[:, :, :3], heads[:, :, :3], cos, sin)), unsqueeze_dim=2
    )
    torch.testing.assert_close(rotated[:, :, :3].double(), query, rtol=2**-8, atol=1e-6)
    assert rotated[:, :, 3].equal(heads[:, :, 3])


def test_nan_logits_draw_no_token():
    nan, inf = float("nan"), float("inf")
    logits = torch.zeros(6, 130).bfloat16()
    logits[0, 70], logits[1, 70], logits[2, 70] = nan, -torch.tensor(nan), inf
    logits[3], logits[4] = -inf, -inf
    logits[4, 99] = 3
    drawn = draw(logits, torch.full((6,), 0.5).double(), 1.0, 1.0, torch.arange(6))
    assert drawn[:5].tolist() == [-1, -1, -1, -1, 99]
    assert drawn[5] in (64, 65)


def test_the_exponential_is_accurate_alone_and_in_a_vectorised_loop():
    @numba.njit
    def alone(values):
        return np.array([cpu_rows.exp(x) for x in values])

    @numba.njit(fastmath=row_kernels.FAST_SUMS)
    def many(values, scale):  # in a vectorised loop, next to another product
        results = np.empty_like(values)
        for at in range(len(values)):
            results[at] = cpu_rows.exp(values[at] * scale)
        return results

    steps = np.linspace(-87, 0, 10_001, dtype=np.float32)
    np.testing.assert_allclose(alone(steps), np.exp(steps.astype(np.float64)), rtol=3e-7)
    scale = np.float32(1 / 0.7)
    scaled = (steps * np.float32(0.7)) * scale
    np.testing.assert_allclose(
        many(steps * np.float32(0.7), scale), np.exp(scaled.astype(np.float64)), rtol=3e-7
    )
    edges = alone(np.array([0, -88, -np.inf, np.nan], dtype=np.float32))
    np.testing.assert_array_equal(edges, [1, 0, 0, np.nan])
