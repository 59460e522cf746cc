"""The processors for vLLM's first model runner, which keeps the generated tokens on the host.

It runs on CPUs, and on GPUs with features that the second runner lacks. The host finds the rail
tokens; one copy per step takes the few rows on the rail to the device.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from zerogap.engine.decoder import to_device
from zerogap.integrations.vllm.arguments import RailCapArguments, num_lne_blocks
from zerogap.strategies.rail import Suppression, suppress_tokens

PLACEHOLDER = -1  # vLLM's, for a token that the host does not know yet

Request = TypeVar("Request")


class _Requests(Generic[Request]):
    """The requests of the batch that ask for a strategy, by row."""

    def __init__(self, new: Callable[[Any, list[int]], Request | None]) -> None:
        self.by_row: dict[int, Request] = {}
        self._new = new

    def update(self, batch_update: Any) -> None:
        from vllm.v1.sample.logits_processor.builtin import process_dict_updates

        process_dict_updates(
            self.by_row, batch_update, lambda params, _, output: self._new(params, output)
        )


@dataclass(frozen=True)
class _OnRail:
    """One request under RailCap: Algorithm 1's H, and the running list of generated tokens."""

    successors: dict[tuple[int, ...], int]
    n: int
    suppression: Suppression
    output: list[int]

    def rail_token(self) -> int | None:
        if self.output and self.output[-1] == PLACEHOLDER:
            raise RuntimeError(
                "railcap: this vLLM schedules the next step before the last token is known; start "
                "it with --no-async-scheduling (async_scheduling=False)"
            )
        return self.successors.get(tuple(self.output[-self.n :]))


class RailCapProcessor:
    """RailCap for the requests that ask for it."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self._model_config = vllm_config.model_config
        self._requests = _Requests(self._new_request)

    def is_argmax_invariant(self) -> bool:
        """It changes greedy decoding too."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Follow the changes of the batch."""
        self._requests.update(batch_update)

    def apply(self, logits: Tensor) -> Tensor:
        """Suppress the rail tokens in the logits (R, V), in place."""
        rails: dict[Suppression, list[tuple[int, int]]] = {}
        for row, request in self._requests.by_row.items():
            token = request.rail_token()
            if token is not None:
                rails.setdefault(request.suppression, []).append((row, token))
        for suppression, rows_and_tokens in rails.items():
            row, token = to_device(torch.tensor(rows_and_tokens).T, logits.device)
            suppress_tokens(logits, row, token, suppression, warns=True)
        return logits

    def _new_request(self, sampling_params: Any, output: list[int]) -> _OnRail | None:
        arguments = RailCapArguments.parse(sampling_params)
        if arguments is None:
            return None
        tokens, railcap = arguments.within(self._model_config), arguments.railcap
        n, windows = railcap.n, range(len(tokens) - railcap.n)
        order = windows if railcap.successor == "last" else reversed(windows)
        successors = {tuple(tokens[k : k + n]): tokens[k + n] for k in order}
        return _OnRail(successors, n, railcap.suppression, output)


class LNEBlockingProcessor:
    """LNE-blocking for the requests that ask for it."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self._requests = _Requests(self._new_request)

    def is_argmax_invariant(self) -> bool:
        """It changes greedy decoding too."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Follow the changes of the batch."""
        self._requests.update(batch_update)

    def apply(self, logits: Tensor) -> Tensor:
        """Exclude the most probable token of the rows (R, V) that are blocked, in place."""
        rows = [
            row
            for row, (num_blocks, output) in self._requests.by_row.items()
            if len(output) < num_blocks
        ]
        if rows:
            row = to_device(torch.tensor(rows), logits.device)
            logits[row, logits[row].argmax(-1)] = float("-inf")
        return logits

    @staticmethod
    def _new_request(sampling_params: Any, output: list[int]) -> tuple[int, list[int]] | None:
        num_blocks = num_lne_blocks(sampling_params)
        return None if num_blocks is None else (num_blocks, output)
