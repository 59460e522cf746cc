"""How far a decoding job is, on standard error."""

import sys

import psutil
import torch
from tqdm import tqdm

from zerogap.engine.decoder import Response


class Progress:
    """A progress bar on standard error: questions, tokens/s, time left, batch size, memory."""

    def __init__(self, total: int, label: str = "") -> None:
        self._bar = tqdm(
            total=total,
            desc=label or None,
            unit="question",
            mininterval=0.5 if sys.stderr.isatty() else 10,  # fewer lines in a log file
            maxinterval=60,
            dynamic_ncols=True,
        )
        self._num_tokens = self._batch_size = 0
        self.mark()

    def __enter__(self) -> "Progress":
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
