"""Logits in float32 from a model in lower precision, for ranks, entropies and greedy tokens.

Logits in bfloat16 are too coarse for them: their spacing is 0.125 between 16 and 32, so that many
tokens tie with the largest logit, and a rank or an argmax among them is arbitrary.
"""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

VOCABULARY_BLOCK = 8192  # tokens whose head weights are in float32 at the same time

_LOW_PRECISION = (torch.bfloat16, torch.float16)


def has_low_precision_head(model: PreTrainedModel) -> bool:
    """Whether the model's logits come from a linear layer in bfloat16 or float16."""
    head = model.get_output_embeddings()
    return isinstance(head, nn.Linear) and head.weight.dtype in _LOW_PRECISION


@contextlib.contextmanager
def float32_logits(model: PreTrainedModel) -> Iterator[None]:
    """Compute the model's logits in float32 from its hidden states while the block runs.

    The output of the head is replaced within the model's own forward pass, so what the model does
    to it afterwards (soft-capping, scaling) is done in float32 too. Other models are left alone: in
    float32 nothing changes.
    """
    if not has_low_precision_head(model):
        yield
        return
    handle = model.get_output_embeddings().register_forward_hook(_in_float32)
    try:
        yield
    finally:
        handle.remove()


def _in_float32(head: nn.Linear, inputs: tuple[Tensor], output: Tensor) -> Tensor:
    """The head's output (…, V), computed in float32 block by block."""
    hidden = inputs[0].float()
    logits = torch.empty(output.shape, dtype=torch.float32, device=output.device)
    for start in range(0, len(head.weight), VOCABULARY_BLOCK):
        block = slice(start, start + VOCABULARY_BLOCK)
        bias = None if head.bias is None else head.bias[block].float()
        logits[..., block] = nn.functional.linear(hidden, head.weight[block].float(), bias)
    return logits
