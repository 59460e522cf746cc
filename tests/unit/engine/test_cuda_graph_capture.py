import contextlib

import pytest
import torch

from zerogap.engine.kernels.cuda_graphs import CudaGraphCapture


@pytest.mark.parametrize("faithful", [True, False])
def test_a_graph_is_used_only_if_its_replay_gives_the_bits_of_the_step(faithful, monkeypatch):
    """The calls of CUDA are replaced by fakes."""
    device = torch.device("cuda:1")  # not the current one
    logits = torch.zeros(3)

    class Graph:
        def replay(self):
            logits.copy_(torch.tensor([1.0, 2.0, 3.0 if faithful else 3.000001]))

    class Stream:
        def __init__(self, of):
            self.device = of

        def wait_stream(self, other):
            assert other.device == self.device == device

    @contextlib.contextmanager
    def context(*_, **__):
        yield

    for name, fake in {
        "Stream": Stream, "current_stream": Stream, "CUDAGraph": Graph,
        "graph_pool_handle": lambda: (0, 1), "stream": context, "graph": context,
    }.items():  # fmt: skip
        monkeypatch.setattr(torch.cuda, name, fake)

    def step():
        return logits.copy_(torch.tensor([1.0, 2.0, 3.0]))

    if faithful:
        CudaGraphCapture(device)(step)()
        assert logits.tolist() == [1.0, 2.0, 3.0]
    else:
        with pytest.raises(RuntimeError, match="the replayed step gives other logits"):
            CudaGraphCapture(device)(step)
