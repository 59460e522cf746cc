"""What a decoder computes against whole sequences, each computed alone."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from helpers.tiny_models import VOCABULARY, model
from zerogap.engine.decoder import Rows

Row = tuple[int, list[int]]  # the number of its question, and its own tokens


def rows_of(generated: Sequence[Sequence[int]]) -> Rows:
    """A batch with these generated tokens; each row has a question of its own."""
    width = 1 + max(map(len, generated))
    tokens = torch.tensor([[*row, *[-1] * (width - len(row))] for row in generated]).long()
    steps = torch.tensor([len(row) for row in generated])
    return Rows(torch.arange(len(generated)), steps, tokens.view(len(generated), width))


@torch.no_grad()
def whole_logits(
    net: Any, prefix: list[int], questions: Sequence[list[int]], rows: Sequence[Row]
) -> torch.Tensor:
    """The last logits of every row (rows, vocabulary), on the CPU."""
    sequences = [torch.tensor([prefix + questions[q] + own], device=net.device) for q, own in rows]
    return torch.cat([net(tokens).logits[:, -1] for tokens in sequences]).cpu()


def rounding_errors(
    family: str, dtype: torch.dtype, make_decoder: Callable, num_models: int, device: str = "cpu"
) -> tuple[torch.Tensor, torch.Tensor]:
    """Errors of the logits of shared rows after nine steps, and of each sequence alone."""
    errors, errors_alone = [], []
    for seed in range(num_models):
        rng = random.Random(seed)
        prefix, *questions = ([rng.randrange(VOCABULARY) for _ in range(n)] for n in (20, 3, 14))
        rows = [(q, [rng.randrange(VOCABULARY) for _ in range(9)]) for q in (0, 1, 0, 1)]
        net, exact = (model(family, seed).to(device, dtype) for _ in range(2))
        exact.to(torch.float32 if device == "cpu" else torch.float64)  # the same weights
        true = whole_logits(exact, prefix, questions, rows)
        errors_alone.append(whole_logits(net, prefix, questions, rows) - true)
        decoder = make_decoder(net)
        decoder.prefill_prefix(prefix)
        decoder.prefill_prompts(questions)
        decoder.reorder(np.array([0, 1, 0, 1]))
        for tokens in zip(*(own for _, own in rows), strict=True):
            logits = decoder.step(torch.tensor(tokens, device=device))
        errors.append(logits.cpu() - true)
    return torch.cat(errors), torch.cat(errors_alone)
