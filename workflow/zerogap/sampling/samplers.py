"""What draws the responses of a cell: the interface of our engine and of vLLM, and our engine."""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from zerogap.engine.decoder import Decoder, Edit, Prompt, Response, SamplingParams
from zerogap.engine.sampler import auto_batch_size, sample


class Sampler(Protocol):
    """Draws responses to prompts; the jobs do not know which engine that takes."""

    @property
    def prompts(self) -> list[Prompt]:
        """The prompts of all questions."""

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The model's tokenizer."""

    @property
    def sampling(self) -> SamplingParams:
        """How responses are drawn."""

    @property
    def identity(self) -> dict[str, Any]:
        """What the draws depend on besides model and settings: a resumed job must have the same."""

    def batch_size(self) -> int:
        """How many samples to draw together at first."""

    def draw(self, indices: Sequence[int], batch_size: int) -> Iterator[tuple[int, list[Response]]]:
        """Draw `sampling.num_samples` responses to each of some prompts.

        Args:
            indices: of the prompts.
            batch_size: samples drawn together.

        Yields:
            (index of the prompt, its responses in order of sample id), in any order.
        """


def engine_identity(decoder: Decoder) -> dict[str, Any]:
    """What our engine and a decoder add to the provenance of what they have decoded."""
    return {"engine": "zerogap", **placement(decoder.model)}


def placement(model: PreTrainedModel) -> dict[str, str]:
    """The device and the precision of a model, which decide the last bits of its logits."""
    return {"device": str(model.device), "precision": str(model.dtype).removeprefix("torch.")}


@dataclass(frozen=True)
class EngineSampler:
    """Our own engine.

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
        """The engine, and the device and precision, which decide the last bits of the logits."""
        return engine_identity(self.decoder)

    def batch_size(self) -> int:
        """The configured size, or what fits into memory."""
        if self.sampling.batch_size == "auto":
            return auto_batch_size(self.decoder, self.prompts, self.sampling)
        return self.sampling.batch_size

    def draw(self, indices: Sequence[int], batch_size: int) -> Iterator[tuple[int, list[Response]]]:
        """Draw responses: see :class:`Sampler` and :func:`zerogap.engine.sampler.sample`."""
        sampling = dataclasses.replace(self.sampling, batch_size=batch_size)
        return sample(
            self.decoder, self.prompts, self.tokenizer, sampling, self.edit_logits, indices
        )
