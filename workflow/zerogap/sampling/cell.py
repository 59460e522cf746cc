"""From prompts to the `samples` table: the responses to many questions, sampled and scored.

Questions are sampled in chunks, which makes a job resumable. When a chunk runs out of memory it
is sampled again with half the batch size. A progress bar shows speed, batch size and memory.
"""

import dataclasses
import sys
from collections.abc import Sequence

import pandas as pd
import psutil
import torch
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase

from zerogap.data.extraction import ExtractionRule
from zerogap.engine import memory
from zerogap.engine.decoder import Decoder, Edit, Prompt, Response, SamplingParams
from zerogap.engine.sampler import auto_batch_size, sample
from zerogap.io import parquet
from zerogap.sampling.checkpoint import SampleCheckpoint
from zerogap.sampling.responses import sample_rows

QUESTIONS_PER_CHUNK = 100


def sample_questions(
    decoder: Decoder,
    prompts: list[Prompt],
    golds: Sequence[str | None],
    tokenizer: PreTrainedTokenizerBase,
    sampling: SamplingParams,
    rule: ExtractionRule,
    edit_logits: Edit | None = None,
    *,
    checkpoint: SampleCheckpoint | None = None,
    indices: Sequence[int] | None = None,
) -> pd.DataFrame:
    """Sample and score `sampling.num_samples` responses to every prompt.

    Args:
        decoder: the model to sample from, wrapped by the strategy if it wraps.
        prompts: one per question. What all of them begin with is computed once.
        golds: the gold answer of each prompt; None where it is not known.
        tokenizer: the model's tokenizer.
        sampling: how to draw.
        rule: extracts a response's answer and compares it with the gold answer.
        edit_logits: the strategy's change to a step's logits.
        checkpoint: where finished chunks are kept; without one an interrupted call starts over.
        indices: sample only these prompts (a shard), in this order.

    Returns:
        The `samples` table (:mod:`zerogap.io.parquet`), by question and sample id.

    Raises:
        InputError: see :func:`zerogap.engine.sampler.sample`; or the responses to one question
            alone do not fit into memory.
    """
    questions = _Questions(decoder, prompts, golds, tokenizer, sampling, rule, edit_logits)
    indices = range(len(prompts)) if indices is None else indices
    batch_size = None if sampling.batch_size == "auto" else sampling.batch_size
    tables = []
    with _Progress(len(indices)) as progress:
        for number, start in enumerate(range(0, len(indices), QUESTIONS_PER_CHUNK)):
            chunk = indices[start : start + QUESTIONS_PER_CHUNK]
            table = None
            if checkpoint is not None:
                names = [prompts[index].question_id for index in chunk]
                table = checkpoint.load(number, names, sampling.num_samples)
            if checkpoint is not None and table is not None:
                batch_size = checkpoint.batch_size
                progress.skip(len(chunk))
            else:
                batch_size = batch_size or auto_batch_size(decoder, prompts, sampling)
                table, batch_size = questions.sample_within_memory(chunk, batch_size, progress)
                if checkpoint is not None:
                    checkpoint.save(number, table, batch_size)
            tables.append(table)
    return pd.concat(tables, ignore_index=True)


@dataclasses.dataclass(frozen=True)
class _Questions:
    """What is sampled, and how; see :func:`sample_questions`."""

    decoder: Decoder
    prompts: list[Prompt]
    golds: Sequence[str | None]
    tokenizer: PreTrainedTokenizerBase
    sampling: SamplingParams
    rule: ExtractionRule
    edit_logits: Edit | None

    def sample_within_memory(
        self, chunk: Sequence[int], batch_size: int, progress: "_Progress"
    ) -> tuple[pd.DataFrame, int]:
        """Sample a chunk, halving the batch size while memory runs out; the table and that size."""

        def attempt(batch_size: int) -> pd.DataFrame:
            progress.mark()
            return self._sample(chunk, batch_size, progress)

        return memory.within_memory(
            attempt,
            batch_size,
            num_samples=self.sampling.num_samples,
            on_retry=progress.rewind,
        )

    def _sample(self, chunk: Sequence[int], batch_size: int, progress: "_Progress") -> pd.DataFrame:
        sampling = dataclasses.replace(self.sampling, batch_size=batch_size)
        rows = {}
        # Questions finish in another order than they start in.
        for index, responses in sample(
            self.decoder, self.prompts, self.tokenizer, sampling, self.edit_logits, chunk
        ):
            rows[index] = sample_rows(
                self.prompts[index].question_id,
                self.golds[index],
                responses,
                self.tokenizer,
                sampling.stop,
                self.rule,
            )
            progress.advance(responses, batch_size)
        return pd.DataFrame(
            [row for index in chunk for row in rows[index]],
            columns=parquet.CONTRACTS["samples"].names,
        )


class _Progress:
    """A progress bar on standard error: questions, tokens/s, time left, batch size, memory."""

    def __init__(self, total: int) -> None:
        is_terminal = sys.stderr.isatty()
        self._bar = tqdm(
            total=total,
            unit="question",
            mininterval=0.5 if is_terminal else 10,  # fewer lines in a log file
            maxinterval=60,
            dynamic_ncols=True,
        )
        self._num_tokens = 0
        self._batch_size = 0
        self._marked = (0.0, 0)

    def __enter__(self) -> "_Progress":
        return self

    def __exit__(self, *_: object) -> None:
        self._describe()
        self._bar.close()

    def advance(self, responses: list[Response], batch_size: int) -> None:
        """Count a finished question."""
        self._num_tokens += sum(len(response.token_ids) for response in responses)
        self._batch_size = batch_size
        if self._bar.update():
            self._describe()

    def skip(self, num_questions: int) -> None:
        """Count questions of an earlier attempt, which say nothing about the speed of this one."""
        self._bar.initial += num_questions
        self._bar.update(num_questions)

    def mark(self) -> None:
        """Remember the current counts."""
        self._marked = (self._bar.n, self._num_tokens)

    def rewind(self, message: str) -> None:
        """Return to the marked counts: what was drawn since then is lost."""
        self._bar.n, self._num_tokens = self._marked
        self._bar.write(message, file=sys.stderr)

    def _describe(self) -> None:
        seconds = self._bar.format_dict["elapsed"] or 1e-9
        if torch.cuda.is_available():
            num_bytes = torch.cuda.max_memory_allocated()
        else:
            num_bytes = psutil.Process().memory_info().rss
        self._bar.set_postfix_str(
            f"{self._num_tokens:,} tokens, {self._num_tokens / seconds:,.0f} tokens/s, "
            f"batch_size {self._batch_size}, {num_bytes / 2**30:.1f} GiB",
            refresh=False,
        )
