"""From prompts to the `samples` table: scored, durable, within memory, and with a progress bar."""

import dataclasses
import gc
import sys
from collections.abc import Callable, Sequence

import pandas as pd
import psutil
import torch
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase

from zerogap.data.extraction import ExtractionRule
from zerogap.engine import memory
from zerogap.engine.decoder import Decoder, Edit, Prompt, Response, SamplingParams
from zerogap.engine.sampler import auto_batch_size, sample
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.sampling.checkpoint import Parts
from zerogap.sampling.responses import sample_rows

PART = 100  # questions whose responses become durable together


def sample_questions(
    decoder: Decoder,
    prompts: list[Prompt],
    golds: Sequence[str | None],
    tokenizer: PreTrainedTokenizerBase,
    sampling: SamplingParams,
    rule: ExtractionRule,
    edit: Edit | None = None,
    *,
    parts: Parts | None = None,
    chosen: Sequence[int] | None = None,
) -> pd.DataFrame:
    """The `samples` table of all prompts, or of the chosen ones.

    Args:
        golds: the right answer to each prompt; None where it is not known.
        rule: which answer a response gives, and whether it is the right one.
        parts: where finished questions are kept; without it a killed call has to start again.

    Raises:
        InputError: as :func:`zerogap.engine.sampler.sample`, or one question's samples do not
            fit the memory.
    """
    chosen = range(len(prompts)) if chosen is None else chosen
    tables = []
    rows = None if sampling.batch_size == "auto" else sampling.batch_size
    with _Progress(len(chosen)) as progress:
        for number, start in enumerate(range(0, len(chosen), PART)):
            part = chosen[start : start + PART]
            names = [prompts[index].question_id for index in part]
            table = parts.load(number, names, sampling.num_samples) if parts else None
            if table is not None:
                rows = parts.batch_rows
                progress.skip(len(part))
            else:
                rows = rows or auto_batch_size(decoder, prompts, sampling)

                def draw(together: int, part: Sequence[int] = part) -> pd.DataFrame:
                    now = dataclasses.replace(sampling, batch_size=together)
                    drawn = {}
                    for index, responses in sample(decoder, prompts, tokenizer, now, edit, part):
                        drawn[index] = sample_rows(
                            prompts[index].question_id,
                            golds[index],
                            responses,
                            tokenizer,
                            sampling.stop,
                            rule,
                        )
                        progress.advance(responses, together)
                    listed = [row for index in part for row in drawn[index]]
                    return pd.DataFrame(listed, columns=parquet.CONTRACTS["samples"].names)

                table, rows = _within_memory(draw, rows, sampling.num_samples, progress)
                if parts:
                    parts.save(number, table, rows)
            tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _within_memory(
    draw: Callable[[int], pd.DataFrame], rows: int, samples: int, progress: "_Progress"
) -> tuple[pd.DataFrame, int]:
    """The part and with how many samples together it was drawn: half as many while memory fails."""
    while True:
        progress.mark()
        try:
            return draw(rows), rows
        except Exception as error:
            if not memory.is_exhausted(error):
                raise
            reason = str(error).splitlines()[0]
        if rows // 2 < samples:
            raise InputError(
                f"out of memory with {rows} samples together, which is one question's "
                f"({samples}): fewer samples, fewer new tokens or a larger device ({reason})"
            )
        rows //= 2
        progress.back(f"out of memory ({reason}): going on with {rows} samples together")
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


class _Progress:
    """A bar on standard error: questions, tokens a second, time left, batch size, memory."""

    def __init__(self, total: int) -> None:
        terminal = sys.stderr.isatty()
        self._bar = tqdm(
            total=total,
            unit="question",
            mininterval=0.5 if terminal else 10,  # a log need not move
            maxinterval=60,
            dynamic_ncols=True,
        )
        self._tokens = 0

    def __enter__(self) -> "_Progress":
        return self

    def __exit__(self, *_: object) -> None:
        self._describe()
        self._bar.close()

    def advance(self, responses: list[Response], together: int) -> None:
        self._tokens += sum(len(response.token_ids) for response in responses)
        self._together = together
        if self._bar.update():
            self._describe()

    def skip(self, questions: int) -> None:
        """Questions that an earlier run has sampled: no part of the speed."""
        self._bar.initial += questions
        self._bar.update(questions)

    def mark(self) -> None:
        self._marked = self._bar.n, self._tokens

    def back(self, message: str) -> None:
        """Return to the mark: what was drawn since is lost."""
        self._bar.n, self._tokens = self._marked
        self._bar.write(message, file=sys.stderr)

    _together = 0

    def _describe(self) -> None:
        spent = self._bar.format_dict["elapsed"] or 1e-9
        if torch.cuda.is_available():
            held = torch.cuda.max_memory_allocated()
        else:
            held = psutil.Process().memory_info().rss
        self._bar.set_postfix_str(
            f"{self._tokens:,} tokens, {self._tokens / spent:,.0f} tokens/s, "
            f"{self._together} samples together, {held / 2**30:.1f} GiB",
            refresh=False,
        )
