"""Two variants of RailCap's rail rule. They are ours, not the paper's, and off by default.

RailCap caps the rail token at every step on the rail: also where the token has no real alternative,
and also in responses to unleaked questions. The diagnostics (docs/railcap.md) measure both. Each
variant addresses one of them:

- :class:`RailCapClearRunnerUp` leaves the rail token alone where no other token is a clear second;
- :class:`RailCapLowEntropy` leaves questions alone whose trajectory is not among the certain ones.

docs/railcap.md says how their parameters were chosen and what was measured: neither met the
criterion that was written down beforehand.
"""

import math
from dataclasses import dataclass, replace
from statistics import fmean

import torch
from torch import Tensor

from zerogap.engine.decoder import Rows
from zerogap.engine.transfer import to_device
from zerogap.strategies.base import Context, Intervention
from zerogap.strategies.rail import pad_trajectories, rail_tokens
from zerogap.strategies.railcap import RailCap


@dataclass(frozen=True)
class RailCapClearRunnerUp:
    """RailCap at the steps at which the runner-up is clearly ahead of the other tokens.

    Without the rail token, the other tokens share its probability in proportion to their own. The
    runner-up is clear if its share is at least `min_share`. Where it is smaller, the cap would
    not make the rail token one of two choices but leave it behind many unlikely ones.

    Attributes:
        n: the n-gram threshold.
        min_share: between 0 and 1, at temperature 1; 0 is RailCap.

    Raises:
        ValueError: `n` is below 1, or `min_share` is not between 0 and 1.
    """

    n: int = 4
    min_share: float = 0.5

    def __post_init__(self) -> None:
        RailCap(self.n)  # checks n
        if not 0 <= self.min_share <= 1:
            raise ValueError(
                f"RailCapClearRunnerUp: min_share must be between 0 and 1 (got {self.min_share})"
            )

    def prepare(self, context: Context) -> Intervention:
        """Return the cap along `context.trajectories`."""
        trajectories = pad_trajectories(context.trajectories, self.n)
        min_log_share = math.log(self.min_share) if self.min_share else -math.inf

        def edit_logits(logits: Tensor, rows: Rows) -> Tensor:
            rail = rail_tokens(trajectories, rows, self.n)
            return cap_below_clear_runner_up(logits, rail, min_log_share)

        return Intervention(edit_logits=edit_logits)


@dataclass(frozen=True)
class RailCapLowEntropy:
    """RailCap on the questions whose trajectory the model is unusually certain of.

    A trajectory's entropy is the mean over its steps. It is capped if that is at most `factor`
    times the mean over all trajectories. Which questions are capped therefore depends on the
    questions that are asked together.

    Attributes:
        n: the n-gram threshold.
        factor: of the mean entropy of all trajectories; infinity is RailCap.

    Raises:
        ValueError: `n` is below 1, or `factor` is negative.
    """

    n: int = 4
    factor: float = 1.0

    def __post_init__(self) -> None:
        RailCap(self.n)  # checks n
        if not self.factor >= 0:
            raise ValueError(f"RailCapLowEntropy: factor must not be negative (got {self.factor})")

    def prepare(self, context: Context) -> Intervention:
        """Return the cap along the trajectories of low entropy among `context.trajectories`."""
        entropies = [fmean(steps) for steps in context.entropies]
        mean = fmean(entropies)
        bound = self.factor * mean if mean else 0.0  # infinity times 0 is not a number
        trajectories = [  # an empty one has no window, so nothing is capped
            trajectory if entropy <= bound else []
            for trajectory, entropy in zip(context.trajectories, entropies, strict=True)
        ]
        return RailCap(self.n).prepare(replace(context, trajectories=trajectories))


def cap_below_clear_runner_up(logits: Tensor, rail: Tensor, min_log_share: float) -> Tensor:
    """Cap the rail token of every row with a clear runner-up; changes `logits` in place.

    Args:
        logits: (R, V) on the model's device.
        rail: (R,) on the CPU; -1 leaves a row as it is.
        min_log_share: logarithm of the smallest share of the runner-up among the other tokens.
    """
    row = (rail >= 0).nonzero()[:, 0]
    if not len(row):
        return logits
    row, token = to_device(row, logits.device), to_device(rail[row], logits.device)
    others = logits[row].scatter_(1, token[:, None], float("-inf"))
    runner_up = others.amax(dim=-1)
    log_share = runner_up.float() - others.float().logsumexp(dim=-1)
    before = logits[row, token]
    capped = torch.minimum(before, runner_up)
    logits[row, token] = torch.where(log_share >= min_log_share, capped, before)
    return logits
