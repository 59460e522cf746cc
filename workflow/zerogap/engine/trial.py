"""The trial of decoders: their logits on random tokens against passes over whole sequences.

A decoder is right for a model if it gives the logits of a forward pass over the whole sequence
without a cache, up to rounding. How far rounding alone takes a model's logits is measured: the
reference is computed in float32, and the same pass in the model's own precision has the difference
that a right decoder may have too. It grows with depth, so no constant would do. What all logits of
a token have in common is left out: it changes no probability, and in Gemma-3 its rounding is the
largest part.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map
from transformers import PreTrainedModel

from zerogap.engine import memory
from zerogap.engine.decoder import Capacity, Decoder
from zerogap.engine.hf_decoder import logits_of
from zerogap.engine.shared_prompt_attention import ATTENTION

MAX_DIFFERENCE = 1e-3  # of logits, in standard deviations of the model's
ROUNDING_FACTOR = 2.0  # of the model's own rounding that a decoder may differ by
UNKNOWN_ROUNDING = 0.05  # where a kernel does not compute in float32
NUM_ROWS, NUM_STEPS, QUESTION_LENGTH = 3, 4, 5


class Trial:
    """Random sequences and their logits. The model's attention is set to :attr:`attention`.

    The sequences are rows of one question behind a prefix longer than a sliding window, within the
    `context_length` tokens that the model has positions for. It is put into evaluation mode.

    Attributes:
        attention: the attention implementation of the reference: the model's own, or the eager one
            where that gives other logits, as where an architecture caps scores.
        allowed: the largest difference of a right decoder, in standard deviations of the logits.
    """

    def __init__(self, model: PreTrainedModel, context_length: int) -> None:
        model.eval()
        config = model.config.get_text_config()
        limits = (
            getattr(config, name, None) for name in ("sliding_window", "attention_chunk_size")
        )
        window = max((limit for limit in limits if limit and limit < context_length), default=8)
        window = max(1, min(window, context_length - (4 + QUESTION_LENGTH + NUM_STEPS)))
        generator = torch.Generator().manual_seed(0)
        # Special tokens, such as an image's, are at the end of a vocabulary.
        ids = torch.randint(
            max(1, config.vocab_size // 2),
            (NUM_ROWS, window + 4 + QUESTION_LENGTH + NUM_STEPS),
            generator=generator,
        )
        self._shared = window + 4 + QUESTION_LENGTH
        ids[:, : self._shared] = ids[0, : self._shared]
        self._ids, self._model = ids.to(model.device), model
        self.attention = self._reference_attention()
        model.set_attn_implementation(self.attention)
        exact = own = _exact_pass(model, self._ids)
        if own is None or _is_low(model):
            own = _whole_pass(model, self._ids)
        rounding = UNKNOWN_ROUNDING if exact is None else _difference(own, exact)
        self._expected = own if exact is None else exact
        self.allowed = max(MAX_DIFFERENCE, ROUNDING_FACTOR * rounding)

    def misfit(self, make_decoder: Callable[[PreTrainedModel], Decoder]) -> str | None:
        """Why a decoder does not fit the model, if it does not.

        Raises:
            RuntimeError: the device has no memory for the trial, which says nothing about the
                decoder.
        """
        self._model.set_attn_implementation(self.attention)
        try:
            logits = self._decoded(make_decoder(self._model))
        except Exception as error:  # an unknown architecture may fail anywhere
            if memory.is_exhausted(error):
                raise
            return f"{type(error).__name__}: {error}"
        difference = _difference(logits, self._expected)
        return None if difference <= self.allowed else f"logits differ by {difference:.2g}"

    def _decoded(self, decoder: Decoder) -> Tensor:
        """Logits (rows, 1 + steps, V) of a decoder, whose rows change places before every step.

        Steps have the same shape, so that a device that captures steps also replays some.
        """
        decoder.reserve(
            Capacity(
                max_rows=NUM_ROWS,
                samples_per_prompt=NUM_ROWS,
                max_new_tokens=NUM_STEPS,
                max_prompts=1,
                max_prompt_len=QUESTION_LENGTH,
            )
        )
        prompt = self._ids[0, : self._shared].tolist()
        decoder.prefill_prefix(prompt[:-QUESTION_LENGTH])
        first = decoder.prefill_prompts([prompt[-QUESTION_LENGTH:]])
        logits = [first.expand(NUM_ROWS, -1).clone()]
        for step, tokens in enumerate(self._ids[:, self._shared :].T):
            # The row that is first at a step is last at the next one.
            rows = np.roll(np.arange(NUM_ROWS), -1) if step else np.zeros(NUM_ROWS, dtype=int)
            decoder.reorder(rows)
            logits.append(decoder.step(tokens.roll(-step)).roll(step, 0))
        return torch.stack(logits, dim=1).float()

    def _reference_attention(self) -> str:
        """The model's own attention implementation if the eager one gives the same logits."""
        own = self._model.config._attn_implementation
        if own == ATTENTION:  # of an earlier decoder of the same model
            own = "eager"
        few = self._ids[:1, -8:]
        self._model.set_attn_implementation(own)
        _whole_pass(self._model, few)  # a first pass may scale weights in place (RWKV)
        logits = {}
        for attention in dict.fromkeys([own, "eager"]):
            self._model.set_attn_implementation(attention)
            logits[attention] = _exact_pass(self._model, few)
        mine, eager = logits[own], logits["eager"]
        if mine is None or eager is None or not _difference(mine, eager) <= MAX_DIFFERENCE:
            return "eager"
        return str(own)


def _difference(logits: Tensor, expected: Tensor) -> float:
    """Of logits (…, V) up to a shift, in standard deviations of the expected ones."""
    variance = (logits - expected).var(dim=-1).mean()
    return (variance.sqrt() / expected.std()).item()


def _is_low(model: PreTrainedModel) -> bool:
    """Whether it computes in less than float32; quantised, whatever its other weights are in."""
    return model.dtype.itemsize < 4 or bool(getattr(model, "is_quantized", False))


def _exact_pass(model: PreTrainedModel, ids: Tensor) -> Tensor | None:
    """As :func:`_whole_pass`, in float32 or more; None if a kernel takes low precision only."""
    if not _is_low(model):
        return _whole_pass(model, ids)
    try:
        with InFloat32():
            return _whole_pass(model, ids)
    except Exception as error:
        if memory.is_exhausted(error):
            raise
        return None


@torch.inference_mode()
def _whole_pass(model: PreTrainedModel, ids: Tensor) -> Tensor:
    """Logits (R, ≤ 1 + steps, V) of whole sequences (R, L), one at a time to save memory."""
    last = min(1 + NUM_STEPS, ids.shape[1])
    passes = [logits_of(model, row[None], last=last)[:, -last:] for row in ids]
    return torch.cat(passes).float()


class InFloat32(TorchFunctionMode):
    """Computes in float32 what a model stored in less would compute in that.

    Every call of PyTorch gets its arguments in float32, the weights included, one call at a time:
    a second model in float32 might not fit.
    """

    def __torch_function__(
        self, func: Callable[..., object], types: object, args: Any = (), kwargs: Any = None
    ) -> object:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") != "__get__":  # of an attribute
            args, kwargs = tree_map(_to_float32, (args, kwargs))
        return func(*args, **kwargs)


def _to_float32(value: object) -> object:
    low = (torch.float16, torch.bfloat16)
    if isinstance(value, torch.dtype):
        return torch.float32 if value in low else value
    return value.float() if isinstance(value, Tensor) and value.dtype in low else value
