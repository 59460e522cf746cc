"""The processors for vLLM's second model runner, which keeps the generated tokens on the device.

The host may be steps ahead of the device, so nothing here waits for it: the trajectories are copied
to the device once, when a request enters the batch, and rail tokens are found there. Every request
has a slot; a row of logits belongs to one slot, and with speculative decoding a slot has several
rows in a row.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from zerogap.engine.decoder import to_device
from zerogap.integrations.vllm.arguments import RailCapArguments, num_lne_blocks

NO_TOKEN = -1  # before the first generated token; where there is no rail token
PADDING = -2  # after the end of a trajectory; differs from every token and from NO_TOKEN


class RailCapProcessor:
    """RailCap for the requests that ask for it; vLLM updates `req_states`, the slots' tokens."""

    def __init__(self, vllm_config: Any, req_states: Any) -> None:
        self._model_config = vllm_config.model_config
        self._req_states = req_states
        num_slots, device = req_states.max_num_reqs, req_states.device
        self._is_active = np.zeros(num_slots, dtype=bool)
        self._largest_n = 0
        self._staged: dict[int, list[int]] = {}  # slot → n, ban, first, trajectory
        self._n = torch.zeros(num_slots, dtype=torch.long, device=device)
        self._bans = torch.zeros(num_slots, dtype=torch.bool, device=device)
        self._first = torch.zeros(num_slots, dtype=torch.bool, device=device)
        self._trajectories = torch.full((num_slots, 1), PADDING, device=device)

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        """Note a request that enters the batch; returns whether it asks for RailCap."""
        arguments = RailCapArguments.parse(sampling_params)
        if arguments is not None or self._is_active[req_idx]:
            self._staged[req_idx] = [0, 0, 0]
        self._is_active[req_idx] = arguments is not None
        if arguments is None:
            return False
        railcap, tokens = arguments.railcap, arguments.within(self._model_config)
        if railcap.n < len(tokens):  # else no window of n tokens has a successor
            self._largest_n = max(self._largest_n, railcap.n)
            bans, first = railcap.suppression == "ban", railcap.successor == "first"
            self._staged[req_idx] = [railcap.n, bans, first, *tokens]
        return True

    def apply_staged_writes(self) -> None:
        """Copy what new requests ask for to the device, in one copy."""
        if not self._staged:
            return
        length = max(map(len, self._staged.values()))
        rows = torch.full((len(self._staged), 1 + length), PADDING)
        for row, (req_idx, values) in zip(rows, self._staged.items(), strict=True):
            row[: 1 + len(values)] = torch.tensor([req_idx, *values])
        self._staged.clear()
        table = to_device(rows, self._n.device)
        (slot, n, bans, first), tokens = table[:, :4].T, table[:, 4:]
        missing = tokens.shape[1] - self._trajectories.shape[1]
        if missing > 0:
            self._trajectories = pad(self._trajectories, (0, missing), value=PADDING)
        self._n[slot], self._bans[slot], self._first[slot] = n, bans.bool(), first.bool()
        self._trajectories[slot] = pad(tokens, (0, max(0, -missing)), value=PADDING)

    def apply(self, logits: Tensor, ctx: Any) -> Tensor:
        """Suppress the rail tokens in the logits (R, V), in place."""
        if not self._is_active[ctx.idx_mapping_np].any():
            return logits
        slot = ctx.expanded_idx_mapping.long()
        last = latest_first(self._req_states, ctx, slot, self._largest_n)
        rail = find_rail_tokens(self._trajectories[slot], last, self._n[slot], self._first[slot])
        return suppress(logits, rail, self._bans[slot])


class LNEBlockingProcessor:
    """LNE-blocking for the requests that ask for it."""

    def __init__(self, vllm_config: Any, req_states: Any) -> None:
        self._req_states = req_states
        self._host_blocks = torch.zeros(req_states.max_num_reqs, dtype=torch.long)
        self._num_blocks = self._host_blocks.to(req_states.device)
        self._has_changed = False

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        """Note a request that enters the batch; returns whether it asks for LNE-blocking."""
        num_blocks = num_lne_blocks(sampling_params) or 0
        self._has_changed |= int(self._host_blocks[req_idx]) != num_blocks
        self._host_blocks[req_idx] = num_blocks
        return num_blocks > 0

    def apply_staged_writes(self) -> None:
        """Copy what new requests ask for to the device."""
        if self._has_changed:
            self._num_blocks = to_device(self._host_blocks.clone(), self._num_blocks.device)
            self._has_changed = False

    def apply(self, logits: Tensor, ctx: Any) -> Tensor:
        """Exclude the most probable token of the rows (R, V) that are blocked, in place."""
        if not self._host_blocks.numpy()[ctx.idx_mapping_np].any():
            return logits
        slot = ctx.expanded_idx_mapping.long()
        step = ctx.pos + 1 - self._req_states.prompt_len.gpu[slot]
        is_blocked = step < self._num_blocks[slot]
        best, token = logits.max(dim=-1)
        blocked = best.masked_fill(is_blocked, float("-inf"))
        return logits.scatter_(1, token[:, None], blocked[:, None])


def latest_first(req_states: Any, ctx: Any, slot: Tensor, count: int) -> Tensor:
    """The last generated tokens (R, count) of every row, latest first; -1 before the first one.

    Draft tokens are only in the `input_ids` of the step `ctx`. `slot` (R,) is that of every row.
    """
    back = torch.arange(count, device=slot.device)
    position = ctx.pos[:, None] - back
    row = torch.arange(len(slot), device=slot.device)[:, None] - back
    committed = req_states.all_token_ids.gpu[slot[:, None], position.clamp(min=0)]
    is_input = back <= ctx.expanded_local_pos[:, None]
    tokens = torch.where(is_input, ctx.input_ids[row.clamp(min=0)], committed).long()
    is_prompt = position < req_states.prompt_len.gpu[slot][:, None]
    return tokens.masked_fill(is_prompt, NO_TOKEN)


def find_rail_tokens(trajectories: Tensor, last: Tensor, n: Tensor, is_first: Tensor) -> Tensor:
    """The rail token (R,) of every row, or -1 where the row is off the rail.

    Unlike the strategy's own function, it waits for no result on the host, and rows may have
    thresholds of their own.

    Args:
        trajectories: (R, T) the trajectory of each row, with :data:`PADDING` after its end.
        last: (R, N) the last generated tokens, latest first.
        n: (R,) the n-gram threshold of each row, at most N.
        is_first: (R,) whether the first of several matching windows counts, else the last one.
    """
    # Column k of `matches`: the window of n tokens that ends with the trajectory's token k.
    length = trajectories.shape[1]
    matches = trajectories[:, 1:] != PADDING
    for back in range(last.shape[1]):
        tokens = pad(trajectories, (back, 0), value=PADDING)[:, : length - 1]
        matches &= (tokens == last[:, back : back + 1]) | (n <= back)[:, None]
    position = torch.arange(1, length, device=n.device)
    # The matching window with the largest rank counts; position 0 means that there is none.
    rank = torch.where(is_first[:, None], length - position, position)
    largest = pad(matches * rank, (1, 0)).amax(dim=1)
    successor = torch.where(is_first, (length - largest) % length, largest)
    rail = trajectories.gather(1, successor[:, None])[:, 0]
    return rail.masked_fill(successor == 0, NO_TOKEN)


def suppress(logits: Tensor, rail: Tensor, bans: Tensor) -> Tensor:
    """Cap or ban the rail token of every row that has one, in place and without waiting.

    A token keeps its logit if all others are −inf.

    Args:
        logits: (R, V).
        rail: (R,) rail tokens; -1 leaves a row as it is.
        bans: (R,) whether the token is banned, else capped at the runner-up.
    """
    token = rail.clamp(min=0)[:, None]
    own = logits.gather(1, token)
    lowest = torch.full_like(own, float("-inf"))
    runner_up = logits.scatter_(1, token, lowest).amax(dim=1, keepdim=True)
    suppressed = torch.where(bans[:, None], lowest, torch.minimum(own, runner_up))
    keeps = (rail[:, None] < 0) | runner_up.isneginf()
    return logits.scatter_(1, token, torch.where(keeps, own, suppressed))
