"""RailCap and LNE-blocking inside vLLM, request by request (docs/railcap.md#vllm).

vLLM finds the two processors below through the entry points `vllm.logits_processors`. A request
asks for them in `SamplingParams(extra_args=...)`; other requests are left alone.
"""

from typing import Any

from vllm.v1.sample.logits_processor import LogitsProcessor

from zerogap.integrations.vllm import on_device, on_host
from zerogap.integrations.vllm.arguments import RailCapArguments, num_lne_blocks

RUNNERS = [LogitsProcessor]  # what each model runner takes
try:  # the model runner that GPUs use by default
    from vllm.v1.worker.gpu.sample.logits_processor import LogitsProcessor as OnDevice

    RUNNERS.append(OnDevice)
except ImportError:  # older versions have only the other runner
    pass


class _ForTheRunner(*RUNNERS):  # type: ignore[misc]
    def __new__(cls, vllm_config: Any, *state: Any) -> Any:
        """Return the processor for the model runner that calls: the runners' interfaces differ."""
        runner = on_host if len(state) == 2 else on_device
        return getattr(runner, cls.__name__)(vllm_config, *state)


class RailCapProcessor(_ForTheRunner):
    """RailCap for requests with `extra_args={"railcap": {"trajectory": [...], "n": 4}}`."""

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Check a request's arguments; the client gets the message of the ValueError."""
        RailCapArguments.parse(sampling_params)


class LNEBlockingProcessor(_ForTheRunner):
    """LNE-blocking for requests with `extra_args={"lne_blocking": {"entropy": 0.2}}`."""

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Check a request's arguments; the client gets the message of the ValueError."""
        num_lne_blocks(sampling_params)
