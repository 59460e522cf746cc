import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from zerogap.engine.kernels.attention_parts import part_attention

pytestmark = pytest.mark.usefixtures("kernel_backend")


def literal(query, key, value, num_keys):
    """Output and logarithm of the summed weights in float64, one query after the other."""
    out, weight = torch.empty(query.shape).double(), torch.empty(query.shape[:3]).double()
    for batch in range(len(query)):
        for head in range(query.shape[1]):
            visible = slice(0, int(num_keys[batch]))
            keys, values = key[batch, head, visible].double(), value[batch, head, visible].double()
            for index, one_query in enumerate(query[batch, head].double()):
                scores = keys @ one_query
                out[batch, head, index] = scores.softmax(0) @ values
                weight[batch, head, index] = scores.logsumexp(0)
    return out, weight


def attention(query, key, value, **counts):
    """`part_attention` of queries (B, H, A, D), each of which is a row of its own."""
    batch, heads, queries, size = query.shape
    rows = query.transpose(1, 2).reshape(-1, heads, 1, size)
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
    row_of_cell = order.argsort().view(batch, queries)
    return part_attention(rows[order], key, value, row_of_cell=row_of_cell, **counts)


def case(seed, batch, queries, keys, spread, dtype, size=16):
    """Queries whose scores have about the given standard deviation, keys, values, key counts."""
    generator = torch.Generator().manual_seed(seed)

    def normal(count):
        return torch.randn(batch, 2, count, size, generator=generator)

    num_keys = torch.randint(1, keys + 1, (batch,), generator=generator)
    query, key, value = normal(queries) * spread / size**0.5, normal(keys), normal(keys)
    return query.to(dtype), key.to(dtype), value.to(dtype), num_keys


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    batch=st.integers(1, 3),
    queries=st.integers(1, 9),
    keys=st.integers(1, 70),
    spread=st.floats(0.1, 30),
)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_output_and_summed_weights_are_those_of_one_softmax(
    dtype, seed, batch, queries, keys, spread
):
    """In bfloat16 the scores are exact to 16 bits; only weights and values are rounded."""
    query, key, value, num_keys = case(seed, batch, queries, keys, spread, dtype)
    out, weight = attention(query, key, value, num_keys=num_keys)
    expected_out, expected_weight = literal(query, key, value, num_keys)
    error = {torch.bfloat16: 2**-8, torch.float32: 1e-5, torch.float64: 1e-12}[dtype]
    largest_value = value.abs().max().item()
    assert (out.double() - expected_out).abs().max() < 2 * error * largest_value
    score_error = error + (2**-15 * spread * 10 if dtype == torch.bfloat16 else 0)
    assert (weight.double() - expected_weight).abs().max() < score_error * max(1, spread)


@pytest.mark.parametrize("kernel_backend", ["kernel"], indirect=True)
@pytest.mark.parametrize("size", [2, 16, 64, 80, 128])
@pytest.mark.parametrize("queries", [1, 6, 7, 50])
def test_results_do_not_depend_on_padding_queries(kernel_backend, queries, size):
    query, key, value, num_keys = case(0, 2, queries, 130, 3, torch.bfloat16, size)
    whole = attention(query, key, value, num_keys=num_keys)
    num_queries = torch.tensor([queries, queries // 2])
    partly = attention(query, key, value, num_keys=num_keys, num_rows=num_queries)
    for one, other in zip(whole, partly, strict=True):
        for batch, count in enumerate(num_queries.tolist()):
            assert torch.equal(one[batch, :, :count], other[batch, :, :count])
    expected_out, expected_weight = literal(query, key, value, num_keys)
    torch.testing.assert_close(whole[0].double(), expected_out, rtol=0.02, atol=0.02)
    torch.testing.assert_close(whole[1].double(), expected_weight, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "kernel_backend", ["kernel"], indirect=True
)  # flash attention adds up a mask
def test_a_nan_among_the_visible_keys_reaches_the_output(kernel_backend):
    query, key, value, num_keys = case(0, 3, 2, 9, 1, torch.bfloat16)
    num_keys[:] = 5
    nan = torch.tensor(float("nan"))
    key[0, :, 4], key[1, :, 5], key[2, :, 0] = nan, nan, -nan  # the second is not visible
    out, weight = attention(query, key, value, num_keys=num_keys)
    assert out[[0, 2]].isnan().all()
    assert weight[[0, 2]].isnan().all()
    assert not weight[1].isnan().any()
