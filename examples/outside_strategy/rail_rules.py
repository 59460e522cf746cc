"""Three other rail rules, as strategies from outside the package. None of them is the paper's.

RailCap caps the rail token at every step on the rail: also where the token has no real alternative,
also in responses to questions that were not leaked, and also where it ends the response.

- :class:`ClearRunnerUp` leaves the rail token alone where no other token is a clear second.
- :class:`LowEntropy` leaves questions alone whose trajectory is not among the certain ones.
- :class:`UncappedEnd` leaves the end token alone.
"""

import itertools
import math
from dataclasses import dataclass, replace
from statistics import fmean

import torch
from torch import Tensor

from zerogap import Context, Intervention, RailCap, Rows, pad_trajectories, rail_tokens


@dataclass(frozen=True)
class ClearRunnerUp:
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
            raise ValueError(f"min_share must be between 0 and 1 (got {self.min_share})")

    def prepare(self, context: Context) -> Intervention:
        """Return the cap along `context.trajectories`."""
        trajectories = pad_trajectories(context.trajectories, self.n)
        min_log_share = math.log(self.min_share) if self.min_share else -math.inf

        def edit_logits(logits: Tensor, rows: Rows) -> Tensor:
            rail = rail_tokens(trajectories, rows, self.n)
            row = (rail >= 0).nonzero()[:, 0]
            token = rail[row].to(logits.device)
            row = row.to(logits.device)
            others = logits[row].scatter_(1, token[:, None], float("-inf"))
            runner_up = others.amax(dim=-1)
            log_share = runner_up.float() - others.float().logsumexp(dim=-1)
            before = logits[row, token]
            capped = torch.minimum(before, runner_up)
            logits[row, token] = torch.where(log_share >= min_log_share, capped, before)
            return logits

        return Intervention(edit_logits=edit_logits)


@dataclass(frozen=True)
class LowEntropy:
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
            raise ValueError(f"factor must not be negative (got {self.factor})")

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


@dataclass(frozen=True)
class UncappedEnd:
    """RailCap along the trajectories without their end token, so that responses end as they like.

    Attributes:
        n: the n-gram threshold.

    Raises:
        ValueError: `n` is below 1.
    """

    n: int = 4

    def __post_init__(self) -> None:
        RailCap(self.n)  # checks n

    def prepare(self, context: Context) -> Intervention:
        """Return the cap along `context.trajectories` up to their end token."""
        trajectories = [
            list(itertools.takewhile(lambda token: token not in context.end_tokens, trajectory))
            for trajectory in context.trajectories
        ]
        return RailCap(self.n).prepare(replace(context, trajectories=trajectories))
