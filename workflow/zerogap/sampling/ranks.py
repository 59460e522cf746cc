"""Where the clean model's token stands in the contaminated model's eyes (paper Figure 1 b, d)."""

import torch
from transformers import PreTrainedModel


@torch.inference_mode()
def token_ranks(
    model: PreTrainedModel, prompt_ids: list[int], response_ids: list[int]
) -> list[int]:
    """The rank under `model` of each response token, teacher-forced on those before it.

    Rank 1 is the model's own choice (the two models agree at this step); a token has rank
    1 + the number of tokens with a larger logit.
    """
    inputs = torch.tensor([prompt_ids + response_ids], device=model.device)
    logits = model(inputs).logits[0, len(prompt_ids) - 1 : -1]
    chosen = logits.gather(1, inputs[0, len(prompt_ids) :, None])
    return (1 + (logits > chosen).sum(-1)).tolist()
