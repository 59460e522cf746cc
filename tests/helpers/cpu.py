"""What the processor that runs the tests can do."""

import pytest
import torch


def skip_without_dot_products() -> None:
    """Skip a test, or in a module all of its tests, of kernels that need these instructions."""
    if not torch.cpu.get_capabilities().get("avx512_bf16"):
        pytest.skip("this CPU has no dot products of bfloat16 values", allow_module_level=True)
