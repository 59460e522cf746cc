"""Low precision on a CPU: where it is replaced by float32."""

import pytest
import torch

from helpers.tiny_models import model
from zerogap import precision
from zerogap.engine import loading

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.fixture(params=[0.5, 1.4, 45.0], ids=["fast", "emulating", "slow"])
def cpu_is_slow(request, monkeypatch) -> bool:
    """A CPU with instructions for low precision, one that emulates them, one without a kernel."""
    monkeypatch.setattr(precision, "slowdown", lambda dtype: request.param)
    return request.param > 1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_only_a_cpu_that_is_slow_in_a_precision_uses_float32_instead(cpu_is_slow, dtype) -> None:
    replaced = cpu_is_slow and dtype.itemsize == 2
    assert precision.usable_dtype(dtype, CPU) == (torch.float32 if replaced else dtype)
    assert precision.usable_dtype(dtype, GPU) == dtype


def test_this_cpu_can_be_measured() -> None:
    assert precision.slowdown(torch.bfloat16) > 0


def test_a_model_is_loaded_in_float32_with_the_reason_where_bfloat16_is_slow(
    cpu_is_slow, tmp_path, capsys
) -> None:
    model("llama").bfloat16().save_pretrained(tmp_path)
    loaded = loading.load(tmp_path, "bfloat16")
    assert loaded.dtype == (torch.float32 if cpu_is_slow else torch.bfloat16)
    reason = "in float32, because this CPU is slow in bfloat16."
    assert (reason in capsys.readouterr().err) == cpu_is_slow
