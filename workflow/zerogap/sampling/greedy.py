"""Greedy decoding that makes its batches smaller when memory runs out."""

import dataclasses
import sys

from transformers import PreTrainedTokenizerBase

from zerogap.engine import memory
from zerogap.engine.decoder import Decoder, Prompt, Response, SamplingParams
from zerogap.engine.sampler import auto_batch_size, greedy


def decode_greedily(
    decoder: Decoder,
    prompts: list[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    sampling: SamplingParams,
) -> tuple[list[Response], int]:
    """Return each prompt's greedy trajectory, and the batch size that fitted into memory.

    Args:
        decoder: the model.
        prompts: complete prompts.
        tokenizer: the model's tokenizer.
        sampling: with temperature 0; its batch size is the first one to try.

    Raises:
        InputError: see :func:`zerogap.engine.sampler.greedy`; or one prompt alone does not fit.
    """

    def attempt(batch_size: int) -> list[Response]:
        params = dataclasses.replace(sampling, batch_size=batch_size)
        return greedy(decoder, prompts, tokenizer, params)

    batch_size = sampling.batch_size
    if batch_size == "auto":
        batch_size = auto_batch_size(decoder, prompts, sampling)
    return memory.within_memory(
        attempt,
        min(batch_size, len(prompts)),
        on_retry=lambda message: print(message, file=sys.stderr, flush=True),
    )
