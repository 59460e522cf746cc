"""What draws the responses of a cell, our engine or vLLM, and a job's model loaded into it."""

import contextlib
import dataclasses
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from zerogap.engine import loading, memory
from zerogap.engine.decoder import Decoder, Edit, Prompt, Response, SamplingParams
from zerogap.engine.sampler import auto_batch_size, greedy, sample
from zerogap.errors import InputError
from zerogap.sampling import vllm_sampler
from zerogap.sampling.responses import JobInputs
from zerogap.strategies.base import Context, Strategy, prepared


@dataclass(frozen=True)
class EngineSampler:
    """Responses from our own engine.

    Attributes:
        decoder: the model to sample from, wrapped by the strategy if it wraps.
        prompts: one per question. What all of them begin with is computed once.
        tokenizer: the model's tokenizer.
        sampling: how to draw.
        edit_logits: the strategy's change to a step's logits.
    """

    decoder: Decoder
    prompts: list[Prompt]
    tokenizer: PreTrainedTokenizerBase
    sampling: SamplingParams
    edit_logits: Edit | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """What the draws depend on besides model and settings: a resumed job must have the same."""
        return engine_identity(self.decoder.model)

    def batch_size(self) -> int:
        """The configured size, or what fits into memory."""
        if self.sampling.batch_size == "auto":
            return auto_batch_size(self.decoder, self.prompts, self.sampling)
        return self.sampling.batch_size

    def draw(self, indices: Sequence[int], batch_size: int) -> Iterator[tuple[int, list[Response]]]:
        """Draw `sampling.num_samples` responses to each of some prompts.

        Args:
            indices: of the prompts.
            batch_size: samples drawn together.

        Yields:
            (index of the prompt, its responses in order of sample id), in any order.

        Raises:
            InputError: see :func:`zerogap.engine.sampler.sample`.
        """
        sampling = dataclasses.replace(self.sampling, batch_size=batch_size)
        return sample(
            self.decoder, self.prompts, self.tokenizer, sampling, self.edit_logits, indices
        )


Sampler = EngineSampler | vllm_sampler.VLLMSampler  # the jobs do not know which one they have


def engine_identity(model: PreTrainedModel) -> dict[str, Any]:
    """What our engine and a model's placement add to the provenance of what they have made."""
    precision = str(model.dtype).removeprefix("torch.")
    return {"engine": "zerogap", "device": str(model.device), "precision": precision}


@contextlib.contextmanager
def opened_sampler(
    engine: str,
    model: Path,
    dtype: str,
    inputs: JobInputs,
    sampling: SamplingParams,
    strategy: Strategy,
    context: Context,
) -> Iterator[Sampler]:
    """The sampler of one cell, with its model loaded while the block runs.

    Args:
        engine: "zerogap" or "vllm".
        model: a model folder.
        dtype: "float32", "bfloat16", …
        inputs: the prompts.
        sampling: how to draw.
        strategy: the cell's.
        context: what the strategy may know.

    Raises:
        InputError: the engine cannot be used, or does not run the strategy or the model.
    """
    prompts, tokenizer = inputs.prompts, inputs.tokenizer
    if engine == "vllm":
        arguments = vllm_sampler.request_arguments(strategy, context)
        with vllm_sampler.started(model, dtype, prompts, sampling.max_new_tokens) as llm:
            yield vllm_sampler.VLLMSampler(
                llm, prompts, tokenizer, sampling, inputs.end_tokens, arguments
            )
        return
    intervention = prepared(strategy, context)
    if intervention.filter_responses is not None:
        raise InputError(
            f"strategies: {type(strategy).__name__} filters the responses of another strategy; "
            "name that in filter_of"
        )
    with intervention.applied_to(loading.decoder(loading.load(model, dtype))) as decoder:
        yield EngineSampler(decoder, prompts, tokenizer, sampling, intervention.edit_logits)


def decode_greedily(
    decoder: Decoder,
    prompts: list[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    sampling: SamplingParams,
) -> tuple[list[Response], int]:
    """Return each prompt's greedy trajectory, and the batch size that fitted into memory.

    Batches become smaller when memory runs out.

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
