"""Logits in float32 from a model in lower precision, for ranks, entropies and greedy tokens.

Logits in bfloat16 are too coarse for them: their spacing is 0.125 between 16 and 32, so that many
tokens tie with the largest logit, and a rank or an argmax among them is arbitrary.
"""

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

VOCABULARY_BLOCK = 8192  # tokens whose head weights are in float32 at the same time

_LOW_PRECISION = (torch.bfloat16, torch.float16)


@contextlib.contextmanager
def float32_logits(model: PreTrainedModel) -> Iterator[bool]:
    """Compute the model's logits in float32 from its hidden states while the block runs.

    The head is replaced within the model's own forward pass, so what the model does to its output
    afterwards (soft-capping, scaling) is done in float32 too. Other models are left alone: in
    float32 nothing changes.

    On a CPU the head's weights are kept in float32 meanwhile. A GPU, whose memory is smaller,
    converts them block by block at every pass.

    Yields:
        Whether the logits of the model change for this block. They do not within another such one.
    """
    head: Any = model.get_output_embeddings()
    replaced = vars(head).get("forward")
    is_float32 = isinstance(replaced, functools.partial) and replaced.func is _in_float32
    is_low = isinstance(head, nn.Linear) and head.weight.dtype in _LOW_PRECISION
    if not is_low or is_float32:  # by a block around this one
        yield False
        return
    blocks = head.weight.detach().split(VOCABULARY_BLOCK)
    if head.weight.device.type == "cpu":
        blocks = [block.float() for block in blocks]
    head.forward = functools.partial(_in_float32, blocks, head.bias)
    try:
        yield True
    finally:
        del head.forward  # the class's own serves again
        if replaced is not None:
            head.forward = replaced


def _in_float32(blocks: Sequence[Tensor], bias: Tensor | None, hidden: Tensor) -> Tensor:
    """Logits (…, V) of hidden states (…, d) in float32, from blocks (v, d) of the head's rows."""
    hidden = hidden.to(blocks[0].device, torch.float32)  # the head may be on a device of its own
    num_tokens = sum(map(len, blocks))
    logits = hidden.new_empty(*hidden.shape[:-1], num_tokens)
    parts = torch.split(logits, VOCABULARY_BLOCK, dim=-1)
    for part, block in zip(parts, blocks, strict=True):
        part.copy_(nn.functional.linear(hidden, block.float()))
    return logits if bias is None else logits.add_(bias.float())
