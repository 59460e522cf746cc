"""The processors for vLLM's first model runner, which keeps the generated tokens on the host.

It runs on CPUs, and on GPUs with features that the second runner lacks. The host finds the rail
tokens; one copy per step takes the few rows on the rail to the device.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from zerogap.engine.decoder import to_device
from zerogap.integrations.vllm.arguments import RailCapArguments, num_lne_blocks
from zerogap.strategies.rail import Suppression, suppress_tokens

PLACEHOLDER = -1  # vLLM's, for a token that the host does not know yet


class _Processor:
    """What both have in common: the requests of the batch that ask for the strategy, by row."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self._model_config = vllm_config.model_config
        self._requests: dict[int, Any] = {}

    def is_argmax_invariant(self) -> bool:
        """It changes greedy decoding too."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Follow the changes of the batch."""
        from vllm.v1.sample.logits_processor.builtin import process_dict_updates

        process_dict_updates(
            self._requests, batch_update, lambda params, _, output: self._new(params, output)
        )

    def _new(self, sampling_params: Any, output: list[int]) -> Any:
        """A request with the running list of its generated tokens; None if it does not ask."""
        raise NotImplementedError


class _OnRail(NamedTuple):
    """One request under RailCap: Algorithm 1's H, and the running list of generated tokens."""

    successors: dict[tuple[int, ...], int]
    n: int
    suppression: Suppression
    output: list[int]


class RailCapProcessor(_Processor):
    """RailCap for the requests that ask for it."""

    def apply(self, logits: Tensor) -> Tensor:
        """Suppress the rail tokens in the logits (R, V), in place."""
        rails: dict[Suppression, list[tuple[int, int]]] = {}
        for row, (successors, n, suppression, output) in self._requests.items():
            if output and output[-1] == PLACEHOLDER:
                raise RuntimeError(
                    "railcap: this vLLM schedules the next step before the last token is known; "
                    "start it with --no-async-scheduling (async_scheduling=False)"
                )
            token = successors.get(tuple(output[-n:]))
            if token is not None:
                rails.setdefault(suppression, []).append((row, token))
        for suppression, rows_and_tokens in rails.items():
            row, token = to_device(torch.tensor(rows_and_tokens).T, logits.device)
            suppress_tokens(logits, row, token, suppression, warns=True)
        return logits

    def _new(self, sampling_params: Any, output: list[int]) -> _OnRail | None:
        arguments = RailCapArguments.parse(sampling_params)
        if arguments is None:
            return None
        tokens, railcap = arguments.within(self._model_config), arguments.railcap
        n, windows = railcap.n, range(len(tokens) - railcap.n)
        order = windows if railcap.successor == "last" else reversed(windows)
        successors = {tuple(tokens[k : k + n]): tokens[k + n] for k in order}
        return _OnRail(successors, n, railcap.suppression, output)


class LNEBlockingProcessor(_Processor):
    """LNE-blocking for the requests that ask for it."""

    def apply(self, logits: Tensor) -> Tensor:
        """Exclude the most probable token of the rows (R, V) that are blocked, in place."""
        rows = [row for row, (blocks, output) in self._requests.items() if len(output) < blocks]
        if rows:
            row = to_device(torch.tensor(rows), logits.device)
            logits[row, logits[row].argmax(-1)] = float("-inf")
        return logits

    def _new(self, sampling_params: Any, output: list[int]) -> tuple[int, list[int]] | None:
        num_blocks = num_lne_blocks(sampling_params)
        return None if num_blocks is None else (num_blocks, output)
