"""From prompts to the `samples` table: the responses to many questions, sampled and scored.

Questions are decoded in chunks, each from an empty batch. A finished chunk is kept, which makes a
job resumable. When a chunk runs out of memory it is sampled again with half the batch size. A
progress bar shows speed, batch size and memory.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import pandas as pd

from zerogap.data.extraction import ExtractionRule
from zerogap.engine import memory
from zerogap.io import parquet
from zerogap.io.digests import value_digest
from zerogap.io.resume import Journal
from zerogap.sampling.progress import Progress
from zerogap.sampling.responses import scored_responses
from zerogap.sampling.samplers import Sampler

SAMPLES_PER_CHUNK = 5_000


def sample_questions(
    sampler: Sampler,
    golds: Sequence[str | None],
    rule: ExtractionRule,
    *,
    contract: Literal["samples", "greedy"] = "samples",
    journal: Journal | None = None,
    indices: Sequence[int] | None = None,
    samples_per_chunk: int | None = None,
    label: str = "",
) -> pd.DataFrame:
    """Sample and score `sampler.sampling.num_samples` responses to every prompt.

    Args:
        sampler: draws the responses to its prompts, one per question.
        golds: the gold answer of each prompt; None where it is not known.
        rule: extracts a response's answer and compares it with the gold answer.
        contract: the table to make (:mod:`zerogap.io.parquet`); "greedy" at temperature 0 only.
        journal: where finished chunks are kept; without one an interrupted call starts over.
        indices: sample only these prompts (a shard), in this order.
        samples_per_chunk: how many responses are lost at most when a job is interrupted, but at
            least those to one question; None for `SAMPLES_PER_CHUNK`. Fewer make sampling slower,
            since each chunk starts and ends with a small batch.
        label: what is sampled, shown in front of the progress bar.

    Returns:
        The table, by question and sample id.

    Raises:
        InputError: see :func:`zerogap.engine.sampler.sample`; or the responses to one question
            alone do not fit into memory.
    """
    sampling, columns = sampler.sampling, parquet.CONTRACTS[contract].names
    indices = range(len(sampler.prompts)) if indices is None else indices
    size = max(1, (samples_per_chunk or SAMPLES_PER_CHUNK) // sampling.num_samples)
    table: list[Sequence[Any]] = []
    previous: int | None = None  # batch size; an earlier attempt may have run out of memory
    with Progress(len(indices), label) as progress:
        for start in range(0, len(indices), size):
            chunk = indices[start : start + size]
            key = value_digest([sampler.prompts[index].question_id for index in chunk])
            kept = journal.get(key) if journal else None
            if kept is None:
                progress.mark()
                batch_size = sampling.resumed_batch_size(previous) or sampler.batch_size()
                kept = memory.within_memory(
                    partial(_sample, sampler, golds, rule, columns, chunk, progress),
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
    sampler: Sampler,
    golds: Sequence[str | None],
    rule: ExtractionRule,
    columns: Sequence[str],
    chunk: Sequence[int],
    progress: Progress,
    batch_size: int,
) -> list[Sequence[Any]]:
    """The rows of a chunk of prompts."""
    rows = {}
    # Questions finish in another order than they start in.
    for index, responses in sampler.draw(chunk, batch_size):
        scored = scored_responses(
            sampler.prompts[index].question_id,
            golds[index],
            responses,
            sampler.tokenizer,
            sampler.sampling.stop,
            rule,
        )
        rows[index] = [[row[name] for name in columns] for row in scored]
        progress.advance(responses, batch_size)
    return [row for index in chunk for row in rows[index]]
