"""Steps recorded once and played again, so that a GPU does not wait for Python.

A step of a 7B model is some two thousand kernels. Python takes longer to launch them than the GPU
to run them, unless they are launched as one: as a CUDA graph. A graph is of fixed shapes and
addresses, which is why the cache pads steps and keeps its stores in place
(:class:`zerogap.engine.prompt_cache.Capacity`).
"""

import sys
from collections import Counter
from collections.abc import Callable

import torch
from torch import Tensor

Step = Callable[..., Tensor]  # (a number, inputs …) → logits (R, V)
Record = Callable[[Callable[[], Tensor]], Callable[[], object]]
_SEEN = 2  # a shape is recorded when it comes for this time: many come once


class CudaGraphRunner:
    """Steps of one cache, recorded by their shapes.

    Args:
        step: reads its inputs and tensors that stay where they are, and takes nothing else from
            the host than its first argument and the shapes.
        record: does a step and returns how to do it again with what its tensors hold then.
        rows: the most that a step has.
    """

    def __init__(self, step: Step, record: Record, rows: int) -> None:
        self._step, self._record, self._rows = step, record, rows
        self._seen: Counter[tuple] = Counter()
        self._recorded: dict[tuple, tuple[list[Tensor], Callable[[], object]]] = {}
        self._logits: Tensor | None = None  # one place for all shapes: it is large

    def __call__(self, width: int, *values: Tensor) -> Tensor:
        """The step's logits (R, V), which the next one overwrites."""
        shape = (width, *(value.shape for value in values))
        rows = len(values[0])
        if shape in self._recorded:
            inputs, play = self._recorded[shape]
            for held, value in zip(inputs, values, strict=True):
                held.copy_(value)
            play()
            return self._logits[:rows]

        inputs = [value.clone() for value in values]

        def once() -> Tensor:
            logits = self._step(width, *inputs)
            if self._logits is None:
                self._logits = logits.new_empty(self._rows, logits.shape[1])
            return self._logits[:rows].copy_(logits)

        self._seen[shape] += 1
        if self._record is None or self._seen[shape] < _SEEN:
            return once()
        try:
            self._recorded[shape] = inputs, self._record(once)
        except Exception as error:  # whatever a device refuses to record
            print(
                f"decoding steps are not recorded ({type(error).__name__}: {error}): "
                "going on more slowly",
                file=sys.stderr,
            )
            self._record = None
            return once()
        return self._logits[:rows]


class CudaGraphs:
    """Records steps as CUDA graphs. Their memory is shared, since one of them plays at a time.

    A graph is trusted when it has given the very bits of the step that it was recorded from.
    """

    def __init__(self) -> None:
        self._stream = torch.cuda.Stream()
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, once: Callable[[], Tensor]) -> Callable[[], object]:
        """Do a step and return how to do it again.

        Raises:
            RuntimeError: the device does not record it, or the graph gives something else.
        """
        calling = torch.cuda.current_stream()
        self._stream.wait_stream(calling)
        with torch.cuda.stream(self._stream):
            expected = once().clone()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
                logits = once()
        calling.wait_stream(self._stream)
        logits.zero_()
        graph.replay()
        if not torch.equal(logits, expected):
            raise RuntimeError("a replayed step gives other logits")
        return graph.replay
