"""The result of one check."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from zerogap.errors import InputError

OK, SKIPPED, FAILED = "ok", "skipped", "FAILED"


@dataclass(frozen=True)
class CheckResult:
    """The result of one check.

    Attributes:
        status: OK, SKIPPED or FAILED.
        check: what was checked.
        text: what was found; for a failure, followed by how to fix it.
    """

    status: str
    check: str
    text: str

    def __str__(self) -> str:
        return f"{self.status:8} {self.check}: {self.text}"


def failed(check: str, text: str) -> CheckResult:
    """A failure."""
    return CheckResult(FAILED, check, text)


def raise_failures(results: Sequence[CheckResult]) -> None:
    """Stop if a check failed.

    Raises:
        InputError: with one line per failure.
    """
    if failures := [str(result) for result in results if result.status == FAILED]:
        summary = f"preflight: {len(failures)} of {len(results)} checks failed; nothing was started"
        raise InputError("\n".join([summary, *failures]))


@contextlib.contextmanager
def input_errors_as_failures(results: list[CheckResult], check: str) -> Iterator[None]:
    """Append a failure to the results if the block raises an InputError."""
    try:
        yield
    except InputError as error:
        results.append(failed(check, str(error)))
