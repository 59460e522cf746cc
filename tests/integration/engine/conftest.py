import pytest
import torch

from helpers.cpu import skip_without_dot_products
from zerogap.engine import kernels


@pytest.fixture
def threads():
    """Set the number of PyTorch's threads; restored afterwards."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture(params=["kernel", "PyTorch"])
def kernel_backend(request, monkeypatch):
    """Products and attention in bfloat16 compiled and not, whichever is the faster on this CPU."""
    if request.param == "kernel":
        skip_without_dot_products()
    monkeypatch.setattr(kernels, "has_dot_products", lambda: request.param == "kernel")
    return request.param
