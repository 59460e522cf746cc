"""From prompts to the `samples` table: the responses to many questions, sampled and scored.

Questions are sampled in chunks, which makes a job resumable. When a chunk runs out of memory it
is sampled again with half the batch size. A progress bar shows speed, batch size and memory.
"""

import dataclasses
from collections.abc import Sequence

import pandas as pd

from zerogap.data.extraction import ExtractionRule
from zerogap.engine import memory
from zerogap.io import parquet
from zerogap.sampling.checkpoint import Checkpoint
from zerogap.sampling.progress import Progress
from zerogap.sampling.responses import sample_rows
from zerogap.sampling.samplers import Sampler

SAMPLES_PER_CHUNK = 5_000


def sample_questions(
    sampler: Sampler,
    golds: Sequence[str | None],
    rule: ExtractionRule,
    *,
    checkpoint: Checkpoint | None = None,
    indices: Sequence[int] | None = None,
    samples_per_chunk: int | None = None,
    label: str = "",
) -> pd.DataFrame:
    """Sample and score `sampler.sampling.num_samples` responses to every prompt.

    Args:
        sampler: draws the responses to its prompts, one per question.
        golds: the gold answer of each prompt; None where it is not known.
        rule: extracts a response's answer and compares it with the gold answer.
        checkpoint: where finished chunks are kept; without one an interrupted call starts over.
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
    questions = _Questions(sampler, golds, rule)
    indices = range(len(sampler.prompts)) if indices is None else indices
    samples_per_chunk = samples_per_chunk or SAMPLES_PER_CHUNK
    chunk_size = max(1, samples_per_chunk // sampler.sampling.num_samples)
    batch_size: int | None = None
    tables = []
    with Progress(len(indices), label) as progress:
        for number, start in enumerate(range(0, len(indices), chunk_size)):
            chunk = indices[start : start + chunk_size]
            table = None
            if checkpoint is not None:
                names = [sampler.prompts[index].question_id for index in chunk]
                table = checkpoint.load(number, names, sampler.sampling.num_samples)
            if checkpoint is not None and table is not None:
                batch_size = sampler.sampling.resumed_batch_size(checkpoint.batch_size)
                progress.skip(len(chunk))
            else:
                batch_size = batch_size or sampler.batch_size()
                table, batch_size = questions.sample_within_memory(chunk, batch_size, progress)
                if checkpoint is not None:
                    checkpoint.save(number, table, batch_size)
            tables.append(table)
    return pd.concat(tables, ignore_index=True)


@dataclasses.dataclass(frozen=True)
class _Questions:
    """What is sampled, and how; see :func:`sample_questions`."""

    sampler: Sampler
    golds: Sequence[str | None]
    rule: ExtractionRule

    def sample_within_memory(
        self, chunk: Sequence[int], batch_size: int, progress: Progress
    ) -> tuple[pd.DataFrame, int]:
        """Sample a chunk, halving the batch size while memory runs out; the table and that size."""

        def attempt(batch_size: int) -> pd.DataFrame:
            progress.mark()
            return self._sample(chunk, batch_size, progress)

        return memory.within_memory(
            attempt,
            batch_size,
            num_samples=self.sampler.sampling.num_samples,
            on_retry=progress.rewind,
        )

    def _sample(self, chunk: Sequence[int], batch_size: int, progress: Progress) -> pd.DataFrame:
        rows = {}
        # Questions finish in another order than they start in.
        for index, responses in self.sampler.draw(chunk, batch_size):
            rows[index] = sample_rows(
                self.sampler.prompts[index].question_id,
                self.golds[index],
                responses,
                self.sampler.tokenizer,
                self.sampler.sampling.stop,
                self.rule,
            )
            progress.advance(responses, batch_size)
        return pd.DataFrame(
            [row for index in chunk for row in rows[index]],
            columns=parquet.CONTRACTS["samples"].names,
        )
