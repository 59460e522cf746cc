"""The training loop of a toy base: optimisers, schedule, precision, checkpoints."""

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import PreTrainedModel

from zerogap.io import atomic
from zerogap.precision import usable_dtype
from zerogap.training.toy.corpus import Position


class LossRow(NamedTuple):
    """A row of the loss curve.

    Attributes:
        loss: mean since the previous row, in nats per token.
        seconds: since the training began.
    """

    step: int
    learning_rate: float
    loss: float
    seconds: float


@dataclass
class Progress:
    """The state of a training next to its weights; the curve has about a hundred rows."""

    step: int = 0
    position: Position = (0, 0)
    curve: list[LossRow] = field(default_factory=list)


def learning_rate(step: int, max_steps: int, peak: float, warmup_ratio: float) -> float:
    """Linear warm-up, then cosine decay to a hundredth of the peak."""
    warmup_steps = max(1, round(max_steps * warmup_ratio))
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    progress = (step - warmup_steps) / max(1, max_steps - warmup_steps)
    return peak * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * progress)))


def optimisers(model: PreTrainedModel, rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside the layers, AdamW for embeddings, head and vectors."""
    matrices: list[torch.nn.Parameter] = []
    others: list[torch.nn.Parameter] = []
    for name, parameter in model.named_parameters():
        inner = parameter.ndim == 2 and "embed" not in name
        (matrices if inner else others).append(parameter)
    return [
        torch.optim.Muon(matrices, lr=rate, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=rate, weight_decay=0.0, betas=(0.9, 0.95), fused=True),
    ]


def supports_bfloat16(device: torch.device) -> bool:
    """Whether a GPU computes in bfloat16 natively, or a CPU is not slow in it."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return usable_dtype(torch.bfloat16, device) == torch.bfloat16


def train(
    model: PreTrainedModel,
    blocks_from: Callable[[Position], Iterator[tuple[torch.Tensor, Position]]],
    settings: Mapping[str, Any],
    checkpoint: Path,
) -> Progress:
    """Train the model in place, on its device; resume from the checkpoint if there is one.

    Nothing is random once the model is initialised (there is no dropout), so a checkpoint needs
    only the weights, the optimisers and the position in the text.

    Args:
        model: the model, on its device.
        blocks_from: position → batches (batch_size, sequence_length) from there on, each with the
            position after it.
        settings: max_steps, learning_rate, warmup_ratio and save_steps. A checkpoint is written
            together with the next row of the loss curve; None: never.
        checkpoint: the file of the checkpoint; its folder exists.
    """
    max_steps = settings["max_steps"]
    log_steps = max(1, max_steps // 100)
    model_optimisers = optimisers(model, settings["learning_rate"])
    progress = _resume(checkpoint, model, model_optimisers)
    precision = {"dtype": torch.bfloat16, "enabled": supports_bfloat16(model.device)}
    total_loss = torch.zeros((), dtype=torch.float64, device=model.device)
    earlier_seconds = progress.curve[-1].seconds if progress.curve else 0.0
    start = time.monotonic()
    model.train()
    # zip advances the range first, so that no block is generated after the last step.
    for step, (block, position) in zip(
        range(progress.step, max_steps), blocks_from(progress.position), strict=False
    ):
        rate = learning_rate(step, max_steps, settings["learning_rate"], settings["warmup_ratio"])
        total_loss += _train_step(model, model_optimisers, block.to(model.device), rate, precision)
        progress.step, progress.position = step + 1, position
        if progress.step % log_steps == 0:
            mean_loss = total_loss.item() / log_steps
            total_loss.zero_()
            seconds = earlier_seconds + time.monotonic() - start
            progress.curve.append(LossRow(progress.step, rate, mean_loss, seconds))
            remaining = seconds / progress.step * (max_steps - progress.step)
            print(
                f"step {progress.step}/{max_steps}  loss {mean_loss:.4f}  {seconds:.0f} s, "
                f"about {remaining:.0f} s left",
                flush=True,
            )
            save_steps = settings["save_steps"]
            if (
                save_steps
                and progress.step // save_steps > (progress.step - log_steps) // save_steps
            ):
                _save(checkpoint, model, model_optimisers, progress)
    return progress


def _train_step(
    model: PreTrainedModel,
    model_optimisers: list[torch.optim.Optimizer],
    block: torch.Tensor,
    rate: float,
    precision: Mapping[str, Any],
) -> torch.Tensor:
    """One optimiser step at a learning rate; the loss (nats per token)."""
    for group in itertools.chain(*(optimiser.param_groups for optimiser in model_optimisers)):
        group["lr"] = rate
    with torch.autocast(block.device.type, **precision):
        logits = model(input_ids=block, use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(
        logits[:, :-1].flatten(0, 1).float(), block[:, 1:].flatten()
    )
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for optimiser in model_optimisers:
        optimiser.step()
        optimiser.zero_grad()
    return loss.detach()


def final_loss(progress: Progress) -> float:
    """The mean loss (nats per token) of about the last twentieth of the steps."""
    last = [row.loss for row in progress.curve[-max(1, len(progress.curve) // 20) :]]
    return sum(last) / len(last)


def _save(
    path: Path,
    model: PreTrainedModel,
    model_optimisers: list[torch.optim.Optimizer],
    progress: Progress,
) -> None:
    state = {
        "model": model.state_dict(),
        "optimisers": [optimiser.state_dict() for optimiser in model_optimisers],
        "progress": (progress.step, progress.position, [tuple(row) for row in progress.curve]),
    }
    with atomic.replacing(path) as temporary:
        torch.save(state, temporary)


def _resume(
    path: Path, model: PreTrainedModel, model_optimisers: list[torch.optim.Optimizer]
) -> Progress:
    if not path.exists():
        return Progress()
    try:
        state = torch.load(path, map_location=model.device, weights_only=True)
    except Exception as error:  # a damaged file fails in many ways
        print(f"{path}: is not readable ({error}); starting over", flush=True)
        return Progress()
    model.load_state_dict(state["model"])
    for optimiser, optimiser_state in zip(model_optimisers, state["optimisers"], strict=True):
        optimiser.load_state_dict(optimiser_state)
    step, position, curve = state["progress"]
    print(f"resuming after step {step}", flush=True)
    return Progress(step, position, [LossRow(*row) for row in curve])
