"""What the Hugging Face hub's errors mean, in one line with a remedy, and which are transient."""

import errno
from collections.abc import Iterator

from zerogap.errors import first_line

# Files of a model repository, without and with weights; other formats of weights can run code.
SMALL_FILES = ("*.json", "*.jinja", "*.model", "tokenizer*", "*.txt")
WEIGHTS = ("*.safetensors",)

LOG_IN = "log in with `hf auth login` or HF_TOKEN"


def hub_problem(
    error: BaseException, repository: str, revision: str | None, kind: str = "model"
) -> str:
    """Say what went wrong and what to do about it.

    Args:
        error: whatever the hub's libraries raised; the errors that caused it are considered too.
        repository: name on the hub.
        revision: branch, tag or commit; None for the default branch.
        kind: "model" or "dataset".
    """
    return (
        access_problem(error, repository, revision, kind)
        or _transfer_problem(error, repository)
        or f"'{repository}' cannot be read from the hub ({first_line(error)}); check name, network "
        "and proxy"
    )


def access_problem(
    error: BaseException, repository: str, revision: str | None, kind: str = "model"
) -> str | None:
    """The problem if it is this repository's and does not pass: see :func:`hub_problem`."""
    from huggingface_hub import constants
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    page = f"{constants.ENDPOINT}/{'datasets/' if kind == 'dataset' else ''}{repository}"
    causes = list(_causes(error))
    if any(isinstance(cause, OfflineModeIsEnabled) for cause in causes):
        return (
            f"'{repository}' is not a local folder, and offline mode forbids contacting the hub; "
            "give a local folder, or check the key `offline` and HF_HUB_OFFLINE"
        )
    if any(isinstance(cause, GatedRepoError) for cause in causes):
        return (
            f"'{repository}' is gated, and your login has no access; accept its licence on {page} "
            f"and {LOG_IN}"
        )
    if any(isinstance(cause, (RepositoryNotFoundError, HFValidationError)) for cause in causes):
        return (
            f"'{repository}' is neither a local folder nor on the hub; correct the name, or "
            f"{LOG_IN} if it is private"
        )
    if any(isinstance(cause, RevisionNotFoundError) for cause in causes):
        return f"'{repository}' has no revision '{revision}'; {page} lists them"
    if (status := _status(error)) in (401, 403):
        return f"the hub refuses '{repository}' (HTTP {status}); {LOG_IN}, or renew your token"
    return None


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed later: a rate limit, a lost connection, an outage."""
    status = _status(error)
    if status is not None:
        return status in (408, 429) or status >= 500
    return any(_is_unanswered(cause) or _is_incomplete(cause) for cause in _causes(error))


def retry_after(error: BaseException) -> float | None:
    """Seconds after which the hub wants to be asked again, if it says so."""
    for cause in _causes(error):
        response = getattr(cause, "response", None)
        if response is not None:
            text = response.headers.get("Retry-After", "")
            return float(text) if text.isdecimal() else None
    return None


def _transfer_problem(error: BaseException, repository: str) -> str | None:
    from huggingface_hub import constants

    status = _status(error)
    if status == 429:
        seconds = retry_after(error)
        wait = "a few minutes" if seconds is None else f"{seconds:.0f} seconds"
        return (
            f"the hub limits your requests for '{repository}' (HTTP 429); wait {wait} and run the "
            f"same command again, or {LOG_IN}, which raises the limit"
        )
    if status is not None and status >= 500:
        return (
            f"the hub fails for '{repository}' (HTTP {status}); see https://status.huggingface.co "
            "and run the same command again later"
        )
    for cause in _causes(error):
        if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
            return (
                f"the disk is full while downloading '{repository}'; free some space and run the "
                "same command again: complete files are kept"
            )
        if _is_incomplete(cause):
            return (
                f"a file of '{repository}' arrived incomplete; run the same command again: "
                "complete files are kept"
            )
        if _is_unanswered(cause):
            return (
                f"{constants.ENDPOINT} does not answer for '{repository}' ({first_line(cause)}); "
                "check network and proxy, or give a local folder"
            )
    return None


def _is_unanswered(error: BaseException) -> bool:
    import httpx
    from huggingface_hub.errors import OfflineModeIsEnabled  # a ConnectionError, but it stays

    if isinstance(error, OfflineModeIsEnabled):
        return False
    return isinstance(error, (httpx.TransportError, ConnectionError))


def _is_incomplete(error: BaseException) -> bool:
    return isinstance(error, OSError) and str(error).startswith("Consistency check failed")


def _status(error: BaseException) -> int | None:
    """The status of the HTTP response that an error is about, if any."""
    for cause in _causes(error):
        response = getattr(cause, "response", None)
        if response is not None:
            return int(response.status_code)
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, what caused it, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
