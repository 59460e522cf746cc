"""The training loop of a base: optimisers, schedule, precision, checkpoints."""

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import PreTrainedModel

from zerogap.io import parquet
from zerogap.training.toy.corpus import Place


class LossRow(NamedTuple):
    """A row of the loss curve: mean loss (nats a token) since the row before, seconds since the
    training began."""

    step: int
    learning_rate: float
    loss: float
    seconds: float


@dataclass
class Progress:
    """How far a training is; the curve has about a hundred rows in all."""

    step: int = 0
    place: Place = (0, 0)
    curve: list[LossRow] = field(default_factory=list)


def learning_rate(step: int, steps: int, peak: float, warmup: float) -> float:
    """Linear warm-up over a share of the steps, then a cosine down to a hundredth of the peak."""
    first = max(1, round(steps * warmup))
    if step < first:
        return peak * (step + 1) / first
    done = (step - first) / max(1, steps - first)
    return peak * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * done)))


def optimisers(model: PreTrainedModel, rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the layers' matrices, AdamW for embeddings, the head and vectors."""
    matrices, others = [], []
    for name, parameter in model.named_parameters():
        inner = parameter.ndim == 2 and "embed" not in name
        (matrices if inner else others).append(parameter)
    return [
        torch.optim.Muon(matrices, lr=rate, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=rate, weight_decay=0.0, betas=(0.9, 0.95), fused=True),
    ]


def bfloat16(device: torch.device) -> bool:
    """Whether the device itself computes in bfloat16, and autocast makes it faster."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.ops.mkldnn._is_mkldnn_bf16_supported()


def train(
    model: PreTrainedModel,
    blocks_from: Callable[[Place], Iterator[tuple[torch.Tensor, Place]]],
    settings: dict[str, Any],
    checkpoint: Path,
) -> Progress:
    """Train in place, on the model's device; goes on from the checkpoint where there is one.

    Nothing is random after the model was made (no dropout), so that weights, both optimisers and
    the place in the text are all a checkpoint needs.

    Args:
        blocks_from: the batches (batch_size, sequence_length) from a place in the text on, each
            with the place after it.
        settings: steps, learning_rate, warmup_ratio; checkpoints, the steps between two of them,
            each written with the next row of the curve (none without it).
        checkpoint: the file; its folder exists.
    """
    steps = settings["steps"]
    every = max(1, steps // 100)
    both = optimisers(model, settings["learning_rate"])
    progress = _resume(checkpoint, model, both)
    device = model.device
    precision = {"dtype": torch.bfloat16, "enabled": bfloat16(device)}
    total = torch.zeros((), dtype=torch.float64, device=device)
    earlier = progress.curve[-1].seconds if progress.curve else 0.0
    start = time.monotonic()
    model.train()
    # zip asks the range first: no block is drawn beyond the last step
    for step, (block, place) in zip(
        range(progress.step, steps), blocks_from(progress.place), strict=False
    ):
        block = block.to(device)
        rate = learning_rate(step, steps, settings["learning_rate"], settings["warmup_ratio"])
        for group in itertools.chain(*(optimiser.param_groups for optimiser in both)):
            group["lr"] = rate
        with torch.autocast(device.type, **precision):
            logits = model(input_ids=block, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1).float(), block[:, 1:].flatten()
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimiser in both:
            optimiser.step()
            optimiser.zero_grad()
        total += loss.detach()
        progress.step, progress.place = step + 1, place
        if progress.step % every == 0:
            mean, seconds = total.item() / every, earlier + time.monotonic() - start
            total.zero_()
            progress.curve.append(LossRow(progress.step, rate, mean, seconds))
            left = seconds / progress.step * (steps - progress.step)
            print(
                f"step {progress.step}/{steps}  loss {mean:.4f}  {seconds:.0f} s, "
                f"about {left:.0f} s left",
                flush=True,
            )
            due = settings.get("checkpoints")
            if due and progress.step // due > (progress.step - every) // due:  # since the last row
                _save(checkpoint, model, both, progress)
    return progress


def final_loss(progress: Progress) -> float:
    """The mean loss (nats a token) of about the last twentieth of the steps."""
    last = [row.loss for row in progress.curve[-max(1, len(progress.curve) // 20) :]]
    return sum(last) / len(last)


def _save(
    path: Path, model: PreTrainedModel, both: list[torch.optim.Optimizer], progress: Progress
) -> None:
    state = {
        "model": model.state_dict(),
        "optimisers": [optimiser.state_dict() for optimiser in both],
        "progress": (progress.step, progress.place, [tuple(row) for row in progress.curve]),
    }
    with parquet.atomic(path) as temporary:
        torch.save(state, temporary)


def _resume(path: Path, model: PreTrainedModel, both: list[torch.optim.Optimizer]) -> Progress:
    if not path.exists():
        return Progress()
    try:
        state = torch.load(path, map_location=model.device)
    except Exception as error:  # a torn file fails in many ways
        print(f"{path}: it cannot be read ({error}); the training begins anew", flush=True)
        return Progress()
    model.load_state_dict(state["model"])
    for optimiser, saved in zip(both, state["optimisers"], strict=True):
        optimiser.load_state_dict(saved)
    step, place, curve = state["progress"]
    print(f"going on after step {step}", flush=True)
    return Progress(step, place, [LossRow(*row) for row in curve])
