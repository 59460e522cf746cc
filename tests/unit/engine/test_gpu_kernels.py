"""The kernels for a GPU against a literal computation in float64.

Without a GPU they run in Triton's interpreter, which has no matrix products in bfloat16.
"""

import pytest
import torch

from zerogap.engine.kernels import gpu_triton

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LOW_PRECISION = torch.bfloat16 if torch.cuda.is_available() else torch.float16
TOLERANCES = {torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, LOW_PRECISION])


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def normal(dtype, *shape):
    return torch.randn(*shape).to(DEVICE, dtype)


def assert_close(result, expected):
    tolerance = TOLERANCES[result.dtype]
    torch.testing.assert_close(result.double(), expected, rtol=tolerance, atol=tolerance)


@DTYPES
@pytest.mark.parametrize("num_prefix", [0, 7])
@pytest.mark.parametrize("group", [1, 3])
def test_attention_equals_a_literal_softmax_over_all_parts(dtype, num_prefix, group):
    """A head of 24 values is padded; lengths end within a block of keys, at its end and behind."""
    heads, size, question_slots = 2, 24, 3
    num_question, num_generated = [1, 32, 33, 5], [40, 1, 32, 64]
    slot, num_rows = [2, 0, 2, 1], 4
    query = normal(dtype, num_rows, heads, group, size) / size**0.5
    prefix_keys, prefix_values = (normal(dtype, heads, num_prefix, size) for _ in range(2))
    question = [normal(dtype, question_slots, heads, 33, size) for _ in range(2)]
    generated = [normal(dtype, num_rows + 2, heads, 64, size) for _ in range(2)]
    prefix = None
    if num_prefix:
        flat = query.double().transpose(0, 1).flatten(1, 2)
        scores = flat @ prefix_keys.double().transpose(1, 2)
        prefix = (
            (scores.softmax(-1) @ prefix_values.double()).to(dtype),
            scores.logsumexp(-1).float(),
        )
    lengths = [
        torch.tensor(values, device=DEVICE) for values in (num_question, num_generated, slot)
    ]
    result = gpu_triton.attend(query, prefix, tuple(question), tuple(generated), *lengths)
    for row in range(num_rows):
        keys, values = (
            torch.cat(
                [a, b[slot[row], :, : num_question[row]], c[row, :, : num_generated[row]]], dim=1
            )
            for a, b, c in zip((prefix_keys, prefix_values), question, generated, strict=True)
        )
        weights = (query[row].double() @ keys.double().transpose(1, 2)).softmax(-1)
        assert_close(result[row], weights @ values.double())


@DTYPES
def test_a_row_is_divided_by_its_root_mean_square(dtype):
    hidden, weight = normal(dtype, 3, 2, 24), normal(dtype, 24)
    exact = hidden.double()
    scale = (exact.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt()
    result = gpu_triton.rms_norm(hidden, weight, 1e-5)
    assert_close(result, exact * scale * weight.double())


@DTYPES
def test_up_is_gated_by_the_silu_of_gate(dtype):
    joined = normal(dtype, 2, 3, 2 * 1030)  # more than one block
    gate, up = joined.double().chunk(2, dim=-1)
    assert_close(gpu_triton.gated_silu(joined), torch.nn.functional.silu(gate) * up)


@DTYPES
def test_only_the_first_heads_are_rotated(dtype):
    heads, cos, sin = normal(dtype, 2, 3, 5, 24), normal(dtype, 2, 3, 24), normal(dtype, 2, 3, 24)
    exact = heads.double()
    turned = torch.cat([-exact[..., 12:], exact[..., :12]], dim=-1)
    expected = exact * cos.double()[:, :, None] + turned * sin.double()[:, :, None]
    expected[:, :, 4:] = exact[:, :, 4:]
    gpu_triton.rotate(heads, cos, sin, 4)
    assert_close(heads, expected)


def test_a_device_on_which_triton_cannot_compile_is_decoded_without_kernels(monkeypatch, capsys):
    def fail(*_):
        raise RuntimeError("no C compiler\nmore lines")

    monkeypatch.setattr(gpu_triton, "rms_norm", fail)
    assert not gpu_triton.works.__wrapped__(torch.device(DEVICE))
    assert "cannot compile kernels here (RuntimeError: no C compiler);" in capsys.readouterr().err
