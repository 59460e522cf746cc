"""RailCap and LNE-blocking inside vLLM, request by request (docs/railcap.md#vllm).

vLLM finds the two processors below through the entry points `vllm.logits_processors`. A request
asks for them in `SamplingParams(extra_args=...)`; other requests are left alone.
"""

from typing import Any

from zerogap.integrations.vllm import on_device, on_host
from zerogap.integrations.vllm.arguments import RailCapArguments, num_lne_blocks

try:  # the model runner that GPUs use by default
    from vllm.v1.worker.gpu.sample.logits_processor import LogitsProcessor
except ImportError:  # older versions have only the other runner
    from vllm.v1.sample.logits_processor import LogitsProcessor


class RailCapProcessor(LogitsProcessor):  # type: ignore[misc]
    """RailCap for requests with `extra_args={"railcap": {"trajectory": [...], "n": 4}}`."""

    def __new__(cls, vllm_config: Any, *state: Any) -> Any:
        """Return the processor for the model runner that calls: the runners' interfaces differ."""
        runner = on_host if len(state) == 2 else on_device
        return runner.RailCapProcessor(vllm_config, *state)

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Check a request's arguments.

        Raises:
            ValueError: they are not valid; the client gets the message.
        """
        RailCapArguments.parse(sampling_params)


class LNEBlockingProcessor(LogitsProcessor):  # type: ignore[misc]
    """LNE-blocking for requests with `extra_args={"lne_blocking": {"entropy": 0.2}}`."""

    def __new__(cls, vllm_config: Any, *state: Any) -> Any:
        """Return the processor for the model runner that calls: the runners' interfaces differ."""
        runner = on_host if len(state) == 2 else on_device
        return runner.LNEBlockingProcessor(vllm_config, *state)

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Check a request's arguments.

        Raises:
            ValueError: they are not valid; the client gets the message.
        """
        num_lne_blocks(sampling_params)
