"""From prompts to the `samples` table: the responses to many questions, sampled and scored.

Questions are decoded in chunks, each from an empty batch. A finished chunk is kept, which makes a
job resumable. When a chunk runs out of memory it is sampled again with half the batch size. A
progress bar shows speed, batch size and memory.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import pandas as pd
from transformers import PreTrainedModel

from zerogap.engine import memory
from zerogap.engine.decoder import Decoder, Edit, Response, SamplingParams
from zerogap.engine.sampler import auto_batch_size, sample
from zerogap.io import parquet
from zerogap.io.digests import value_digest
from zerogap.io.resume import Journal
from zerogap.sampling.progress import Progress
from zerogap.sampling.responses import JobInputs, scored_responses
from zerogap.sampling.vllm_sampler import VLLMSampler

SAMPLES_PER_CHUNK = 5_000


@dataclass(frozen=True)
class EngineSampler:
    """Responses from our own engine, which computes what all prompts begin with once.

    The decoder is wrapped by the strategy if it wraps; `edit_logits` is the strategy's change to a
    step's logits.
    """

    decoder: Decoder
    inputs: JobInputs
    sampling: SamplingParams
    edit_logits: Edit | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """What the draws depend on besides model and settings: a resumed job must have the same."""
        return engine_identity(self.decoder.model)

    def batch_size(self) -> int:
        """The configured size, or what fits into memory."""
        if self.sampling.batch_size == "auto":
            return auto_batch_size(self.decoder, self.inputs.prompts, self.sampling)
        return self.sampling.batch_size

    def draw(self, indices: Sequence[int], batch_size: int) -> Iterator[tuple[int, list[Response]]]:
        """Yield the index of each of some prompts and its responses, in any order."""
        prompts, tokenizer = self.inputs.prompts, self.inputs.tokenizer
        sampling = dataclasses.replace(self.sampling, batch_size=batch_size)
        return sample(self.decoder, prompts, tokenizer, sampling, self.edit_logits, indices)


def engine_identity(model: PreTrainedModel) -> dict[str, Any]:
    """What our engine and a model's placement add to the provenance of what they have made."""
    precision = str(model.dtype).removeprefix("torch.")
    return {"engine": "zerogap", "device": str(model.device), "precision": precision}


def sample_questions(
    sampler: EngineSampler | VLLMSampler,
    *,
    contract: Literal["samples", "greedy"] = "samples",
    journal: Journal | None = None,
    indices: Sequence[int] | None = None,
    samples_per_chunk: int | None = None,
    label: str = "",
) -> pd.DataFrame:
    """Sample and score `sampler.sampling.num_samples` responses to every question.

    Args:
        sampler: draws the responses.
        contract: the table to make (:mod:`zerogap.io.parquet`); "greedy" at temperature 0 only.
        journal: where finished chunks are kept; without one an interrupted call starts over.
        indices: sample only these questions (a shard), in this order.
        samples_per_chunk: how many responses are lost at most when a job is interrupted, but at
            least those to one question; None for `SAMPLES_PER_CHUNK`. Fewer make sampling slower,
            since each chunk starts and ends with a small batch.
        label: what is sampled, shown in front of the progress bar.

    Raises:
        InputError: see :func:`zerogap.engine.sampler.sample`; or the responses to one question
            alone do not fit into memory.
    """
    sampling, prompts = sampler.sampling, sampler.inputs.prompts
    columns = parquet.CONTRACTS[contract].names
    indices = range(len(prompts)) if indices is None else indices
    size = max(1, (samples_per_chunk or SAMPLES_PER_CHUNK) // sampling.num_samples)
    table: list[Sequence[Any]] = []
    previous: int | None = None  # batch size; an earlier attempt may have run out of memory
    with Progress(len(indices), label) as progress:
        for start in range(0, len(indices), size):
            chunk = indices[start : start + size]
            key = value_digest([contract, *(prompts[index].question_id for index in chunk)])
            kept = journal.get(key) if journal else None
            if kept is None:
                progress.mark()
                batch_size = sampling.resumed_batch_size(previous) or sampler.batch_size()
                kept = memory.within_memory(
                    partial(_sample, sampler, columns, chunk, progress),
                    min(batch_size, len(chunk) * sampling.num_samples),
                    num_samples=sampling.num_samples,
                    on_retry=progress.rewind,
                )
                if journal:
                    journal.add(key, kept)
            else:
                progress.skip(len(chunk))
            rows, previous = kept
            table += rows
    return pd.DataFrame(table, columns=columns)


def _sample(
    sampler: EngineSampler | VLLMSampler,
    columns: Sequence[str],
    chunk: Sequence[int],
    progress: Progress,
    batch_size: int,
) -> list[Sequence[Any]]:
    """The rows of a chunk of questions, which finish in another order than they start in."""
    rows = {}
    for index, responses in sampler.draw(chunk, batch_size):
        scored = scored_responses(sampler.inputs, index, responses, sampler.sampling.stop)
        rows[index] = [[row[name] for name in columns] for row in scored]
        progress.advance(responses, batch_size)
    return [row for index in chunk for row in rows[index]]
