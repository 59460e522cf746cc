import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.cpu import skip_without_dot_products
from zerogap.engine.kernels import cpu_products

skip_without_dot_products()


def case(seed, rows, columns, size):
    """Values and a matrix whose products have a standard deviation of about 1."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(rows, size, generator=generator)
    matrix = torch.randn(columns, size, generator=generator) / size**0.5
    return values.bfloat16(), matrix.bfloat16()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 70), st.integers(1, 150), st.integers(1, 40))
def test_products_are_exact_up_to_one_rounding(seed, rows, columns, half_size):
    values, matrix = case(seed, rows, columns, 2 * half_size)
    out = cpu_products.product(values, cpu_products.packed(matrix), columns)
    assert out.shape == (rows, columns)
    expected = values.double() @ matrix.double().T
    torch.testing.assert_close(out.double(), expected, rtol=2**-8, atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 70), st.integers(1, 80), st.integers(1, 40))
def test_gated_products_are_exact_up_to_one_rounding(seed, rows, columns, half_size):
    values, matrix = case(seed, rows, 2 * columns, 2 * half_size)
    out = cpu_products.gated_product(values, cpu_products.packed_gates(matrix), columns)
    assert out.shape == (rows, columns)
    gates, factors = (values.double() @ matrix.double().T).split(columns, dim=-1)
    expected = torch.nn.functional.silu(gates) * factors
    torch.testing.assert_close(out.double(), expected, rtol=2**-8, atol=1e-5)


def test_a_rows_products_are_independent_of_threads_and_other_rows(threads):
    values, matrix = case(0, 500, 200, 64)
    for product, pack, columns in (
        (cpu_products.product, cpu_products.packed, 200),
        (cpu_products.gated_product, cpu_products.packed_gates, 100),
    ):
        packed = pack(matrix)
        threads(1)
        whole = product(values, packed, columns)
        for count in (2, 3, 5):
            threads(count)
            assert product(values, packed, columns).equal(whole)
        for first, last in ((0, 1), (7, 12), (300, 400)):
            assert product(values[first:last], packed, columns).equal(whole[first:last])


def test_a_nan_stays_in_its_row_and_its_column():
    values, matrix = case(0, 20, 70, 16)
    values[3, 5], matrix[66, 0] = float("nan"), float("nan")
    out = cpu_products.product(values, cpu_products.packed(matrix), 70)
    expected = torch.zeros(20, 70, dtype=torch.bool)
    expected[3], expected[:, 66] = True, True
    assert out.isnan().equal(expected)


def test_gates_may_be_as_large_as_floats_are():
    gates = torch.tensor([-float("inf"), -1e30, -90.0, -1.0, 0.0, 1.0, 90.0, 1e30, float("nan")])
    matrix = torch.zeros(2 * len(gates), 2)
    matrix[: len(gates), 0], matrix[len(gates) :, 1] = gates, 2.0
    matrix = matrix.bfloat16()
    out = cpu_products.gated_product(
        torch.ones(1, 2).bfloat16(), cpu_products.packed_gates(matrix), len(gates)
    )
    expected = torch.nn.functional.silu(matrix[: len(gates), 0].double()) * 2
    torch.testing.assert_close(
        out[0, 1:].double(), expected[1:], rtol=2**-8, atol=1e-30, equal_nan=True
    )
