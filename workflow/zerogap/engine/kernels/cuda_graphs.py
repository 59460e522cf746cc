"""Decoding steps captured once and replayed, so that a GPU does not wait for Python.

A step of a 7B model consists of about two thousand kernels. Python takes longer to launch them than
the GPU takes to run them, unless they are launched as one CUDA graph. A graph has fixed shapes and
addresses. That is why steps are padded and storage stays in place when the decoder has a
:class:`~zerogap.engine.decoder.Capacity`.
"""

import sys
from collections import Counter
from collections.abc import Callable

import torch
from torch import Tensor

from zerogap.engine import memory

StepFunction = Callable[..., Tensor]  # (width, *inputs) → logits (R, V)
# Runs a step and returns a function that runs it again on the current content of its tensors.
Capture = Callable[[Callable[[], Tensor]], Callable[[], object]]

CAPTURE_AT_OCCURRENCE = 2  # many shapes occur only once


class CudaGraphRunner:
    """Runs the steps of one cache, captured by shape.

    The first step of a shape runs eagerly. The second one is captured on copies of its inputs; from
    then on the inputs are copied into those and the graph is replayed. If the device refuses a
    capture, all further steps run eagerly.

    Args:
        step: reads its arguments and tensors that stay in place. It must take nothing from the host
            except its first argument and the shapes.
        capture: runs a step and returns its replay.
        max_rows: rows of the largest step.
    """

    def __init__(self, step: StepFunction, capture: Capture, max_rows: int) -> None:
        self._step, self._max_rows = step, max_rows
        self._capture: Capture | None = capture
        self._occurrences: Counter[tuple[object, ...]] = Counter()
        # Of each shape, where the captured kernels read, and their replay.
        self._captured: dict[tuple[object, ...], tuple[list[Tensor], Callable[[], object]]] = {}
        self._logits = torch.empty(0)  # shared by all shapes, because it is large

    def __call__(self, width: int, *values: Tensor) -> Tensor:
        """The step's logits (R, V), in a tensor that the next step overwrites."""
        shape = (width, *(value.shape for value in values))
        if shape in self._captured:
            targets, replay = self._captured[shape]
            for target, value in zip(targets, values, strict=True):
                target.copy_(value)
            replay()
            return self._logits[: len(values[0])]

        inputs = [value.clone() for value in values]

        def run_eagerly() -> Tensor:
            logits = self._step(width, *inputs)
            if not len(self._logits):
                self._logits = logits.new_empty(self._max_rows, logits.shape[1])
            return self._logits[: len(logits)].copy_(logits)

        self._occurrences[shape] += 1
        if self._capture is None or self._occurrences[shape] < CAPTURE_AT_OCCURRENCE:
            return run_eagerly()
        try:
            self._captured[shape] = inputs, self._capture(run_eagerly)
        except Exception as error:  # devices and drivers refuse in many ways
            if memory.is_exhausted(error):  # a smaller batch can be captured
                raise
            reason = f"{type(error).__name__}: {error}"
        else:
            return self._logits[: len(values[0])]
        # Outside the `except` block: the traceback there keeps the capture's tensors alive.
        print(
            f"CUDA graph capture failed ({reason}); falling back to eager decoding", file=sys.stderr
        )
        self._capture = None
        return run_eagerly()


class CudaGraphCapture:
    """Captures steps as CUDA graphs in one memory pool, since only one of them runs at a time.

    A graph is used only if its replay gives the same bits as the step that it was captured from. A
    step that reads a value from the host would otherwise replay with the old value, silently. The
    model's GPU need not be the current one.
    """

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, step: Callable[[], Tensor]) -> Callable[[], object]:
        """Run a step and return its replay.

        Raises:
            RuntimeError: the device cannot capture it, or the replay gives other logits.
        """
        current_stream = torch.cuda.current_stream(self._stream.device)
        self._stream.wait_stream(current_stream)
        with torch.cuda.stream(self._stream):
            expected = step().clone()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
                logits = step()
        current_stream.wait_stream(self._stream)
        logits.zero_()
        graph.replay()
        if not torch.equal(logits, expected):
            raise RuntimeError("the replayed step gives other logits")
        return graph.replay
