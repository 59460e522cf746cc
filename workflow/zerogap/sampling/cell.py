"""From prompts to the `samples` table: the responses to many questions, sampled and scored.

Questions are decoded in chunks, each from an empty batch. A finished chunk is kept, which makes a
job resumable. When a chunk runs out of memory it is sampled again with half the batch size. A
progress bar shows speed, batch size and memory.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from zerogap.data.extraction import ExtractionRule
from zerogap.engine import memory
from zerogap.io import parquet
from zerogap.io.digests import value_digest
from zerogap.io.resume import Journal
from zerogap.sampling.progress import Progress
from zerogap.sampling.responses import sample_rows
from zerogap.sampling.samplers import Sampler

SAMPLES_PER_CHUNK = 5_000

Rows = list[tuple[Any, ...]]
# (positions of a chunk's questions, batch size of the chunk before or None) → rows, batch size.
DecodeChunk = Callable[[range, int | None], tuple[Rows, int]]


def sample_questions(
    sampler: Sampler,
    golds: Sequence[str | None],
    rule: ExtractionRule,
    *,
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
        journal: where finished chunks are kept; without one an interrupted call starts over.
        indices: sample only these prompts (a shard), in this order.
        samples_per_chunk: how many responses are lost at most when a job is interrupted, but at
            least those to one question; None for `SAMPLES_PER_CHUNK`. Fewer make sampling slower,
            since each chunk starts and ends with a small batch.
        label: what is sampled, shown in front of the progress bar.

    Returns:
        The `samples` table (:mod:`zerogap.io.parquet`), by question and sample id.

    Raises:
        InputError: see :func:`zerogap.engine.sampler.sample`; or the responses to one question
            alone do not fit into memory.
    """
    sampling = sampler.sampling
    indices = range(len(sampler.prompts)) if indices is None else indices

    def sample(chunk: Sequence[int], batch_size: int) -> Rows:
        progress.mark()
        rows = {}
        # Questions finish in another order than they start in.
        for index, responses in sampler.draw(chunk, batch_size):
            name = sampler.prompts[index].question_id
            rows[index] = sample_rows(
                name, golds[index], responses, sampler.tokenizer, sampling.stop, rule
            )
            progress.advance(responses, batch_size)
        return [row for index in chunk for row in rows[index]]

    def sample_within_memory(positions: range, previous: int | None) -> tuple[Rows, int]:
        chunk = [indices[position] for position in positions]
        return memory.within_memory(
            lambda batch_size: sample(chunk, batch_size),
            sampling.resumed_batch_size(previous) or sampler.batch_size(),
            num_samples=sampling.num_samples,
            on_retry=progress.rewind,
        )

    size = max(1, (samples_per_chunk or SAMPLES_PER_CHUNK) // sampling.num_samples)
    names = [sampler.prompts[index].question_id for index in indices]
    with Progress(len(indices), label) as progress:
        rows = decode_in_chunks(names, size, sample_within_memory, journal, progress)
    return pd.DataFrame(rows, columns=parquet.CONTRACTS["samples"].names)


def decode_in_chunks(
    question_ids: Sequence[str],
    size: int,
    decode: DecodeChunk,
    journal: Journal | None,
    progress: Progress,
) -> Rows:
    """Decode questions chunk by chunk; those that the journal holds are not decoded again.

    Args:
        question_ids: the questions.
        size: questions per chunk.
        decode: decodes a chunk. After an interruption it continues with the batch size of the last
            chunk, since an earlier attempt may have reduced it when it ran out of memory.
        journal: where finished chunks are kept, if anywhere.
        progress: counts the questions that are skipped.
    """
    rows: Rows = []
    batch_size: int | None = None
    for start in range(0, len(question_ids), size):
        names = list(question_ids[start : start + size])
        key = value_digest(names)
        kept = journal.get(key) if journal else None
        if kept is None:
            kept = decode(range(start, start + len(names)), batch_size)
            if journal:
                journal.add(key, kept)
        else:
            progress.skip(len(names))
        chunk, batch_size = kept
        rows += chunk
    return rows
