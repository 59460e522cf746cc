"""Does a model recover from its second choice? Force it once, then sample on.

A response follows the greedy trajectory up to one random step, takes the runner-up there, and is
sampled from then on. Forcing is an edit of the logits, so the sampler draws such responses like
those of a strategy.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from zerogap.engine.decoder import Edit, Rows, to_device
from zerogap.engine.drawing import uniforms


def forced_steps(question_id: str, length: int, num_samples: int, seed: int) -> list[int]:
    """Return one step in [0, length) per response, uniform and independent.

    Args:
        question_id: the question.
        length: number of tokens of its greedy trajectory, the end token included.
        num_samples: responses to the question.
        seed: seed of the run.
    """
    numbers = uniforms(seed, "recovery-steps", question_id, range(num_samples), 1)[:, 0]
    return [int(number * length) for number in numbers]


def force_runner_up(trajectories: Sequence[Sequence[int]], steps: Sequence[int]) -> Edit:
    """Return the edit that follows each trajectory and leaves it at one step.

    Args:
        trajectories: the greedy trajectory of each prompt, the end token included.
        steps: the step of each prompt, counted from 0, at which the runner-up, the most likely
            token other than the trajectory's, is forced. Later steps are left alone.
    """
    tokens = torch.nn.utils.rnn.pad_sequence(
        [torch.tensor(trajectory) for trajectory in trajectories], batch_first=True
    )
    last_steps = torch.tensor(steps)

    def edit_logits(logits: Tensor, rows: Rows) -> Tensor:
        last = last_steps[rows.question]
        row = (rows.step <= last).nonzero()[:, 0]
        if not len(row):
            return logits
        greedy = tokens[rows.question[row], rows.step[row]]
        leaves = (rows.step == last)[row]
        row, greedy, leaves = (to_device(part, logits.device) for part in (row, greedy, leaves))
        runner_up = logits[row].scatter(1, greedy[:, None], float("-inf")).argmax(-1)
        forced = torch.where(leaves, runner_up, greedy)
        logits[row] = float("-inf")
        logits[row, forced] = 0.0
        return logits

    return edit_logits
