"""Ranks of one model's tokens under another model (paper Figure 1 b, d)."""

from typing import cast

import torch
from transformers import PreTrainedModel

from zerogap.engine.output_head import float32_logits


@torch.inference_mode()
def token_ranks(
    model: PreTrainedModel, prompt_ids: list[int], response_ids: list[int]
) -> list[int]:
    """Return the rank under `model` of each response token, given the tokens before it.

    A token has rank 1 + the number of tokens with a larger logit. Rank 1 is the model's own greedy
    choice; rank 2 is its runner-up. Logits are in float32
    (:mod:`zerogap.engine.output_head`), since those of a bfloat16 model tie.

    Args:
        model: the model that ranks, in the paper the contaminated one.
        prompt_ids: the prompt.
        response_ids: the response to rank, in the paper the clean model's greedy trajectory.
    """
    inputs = torch.tensor([prompt_ids + response_ids], device=model.device)
    with float32_logits(model):
        logits = model(inputs, logits_to_keep=len(response_ids) + 1).logits[0, :-1]
    token_logits = logits.gather(1, inputs[0, len(prompt_ids) :, None])
    return cast(list[int], (1 + (logits > token_logits).sum(-1)).tolist())
