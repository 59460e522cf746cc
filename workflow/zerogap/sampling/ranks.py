"""A given response under a model: the ranks of its tokens, and the entropy of its steps."""

from typing import cast

import torch
from torch import Tensor
from transformers import PreTrainedModel

from zerogap.engine.drawing import entropy
from zerogap.engine.hf_decoder import logits_of
from zerogap.engine.output_head import float32_logits


def token_ranks(
    model: PreTrainedModel, prompt_ids: list[int], response_ids: list[int]
) -> list[int]:
    """Return the rank under `model` of each response token (paper Figure 1 b, d).

    A token has rank 1 + the number of tokens with a larger logit. Rank 1 is the model's own greedy
    choice; rank 2 is its runner-up.

    Args:
        model: the model that ranks, in the paper the contaminated one.
        prompt_ids: the prompt.
        response_ids: the response to rank, in the paper the clean model's greedy trajectory.
    """
    logits = _step_logits(model, prompt_ids, response_ids)
    token_logits = logits.gather(1, torch.tensor(response_ids, device=logits.device)[:, None])
    return cast(list[int], (1 + (logits > token_logits).sum(-1)).tolist())


def step_entropies(
    model: PreTrainedModel, prompt_ids: list[int], response_ids: list[int]
) -> list[float]:
    """Return the entropy (nats) of the distribution that each response token is drawn from.

    Args:
        model: the model.
        prompt_ids: the prompt.
        response_ids: the response.
    """
    return cast(list[float], entropy(_step_logits(model, prompt_ids, response_ids)).tolist())


@torch.inference_mode()
def _step_logits(model: PreTrainedModel, prompt_ids: list[int], response_ids: list[int]) -> Tensor:
    """The logits (T, V) that the response's T tokens follow from, computed in one pass.

    They are in float32 (:mod:`zerogap.engine.output_head`), since those of a bfloat16 model tie.
    """
    inputs = torch.tensor([prompt_ids + response_ids], device=model.device)
    last = len(response_ids) + 1
    with float32_logits(model):
        return logits_of(model, inputs, last=last)[0, -last:-1]
