import pytest
import torch


@pytest.fixture
def threads():
    """Set the number of PyTorch's threads; restored afterwards."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)
