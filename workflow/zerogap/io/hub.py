"""What the Hugging Face hub's errors mean, in one line with a remedy, and which are transient."""

import errno
import sys
from collections.abc import Iterator
from typing import Any, cast

from zerogap.errors import first_line
from zerogap.io.digests import OTHER_COPIES, WEIGHTS, matches

SECOND_COPIES = [*OTHER_COPIES, "*/*"]  # also other formats, in folders of their own

LOG_IN = "log in with `hf auth login` or HF_TOKEN"
LOCAL = {"model": "give a local folder", "dataset": "use local files"}  # instead of the hub


def is_weights(name: str) -> bool:
    """Whether a file of a model repository has weights that are fetched."""
    return matches(name, WEIGHTS) and not matches(name, SECOND_COPIES)


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
        or _transfer_problem(error, repository, kind)
        or f"'{repository}' cannot be read from the hub ({first_line(error)}); check name, network "
        "and proxy"
    )


def access_problem(
    error: BaseException, repository: str, revision: str | None, kind: str = "model"
) -> str | None:
    """The problem if it is this repository's and does not pass: see :func:`hub_problem`."""
    from huggingface_hub import constants, errors

    page = f"{constants.ENDPOINT}/{'datasets/' if kind == 'dataset' else ''}{repository}"
    messages: dict[tuple[type[Exception], ...], str] = {
        (errors.OfflineModeIsEnabled,): "is not on this machine, and offline mode forbids "
        f"contacting the hub; {LOCAL[kind]}, or check the key `offline` and HF_HUB_OFFLINE",
        (errors.GatedRepoError,): "is gated, and your login has no access; accept its licence on "
        f"{page} and {LOG_IN}",
        (errors.RepositoryNotFoundError, errors.HFValidationError): "is neither a local folder nor "
        f"on the hub; correct the name, or {LOG_IN} if it is private",
        (errors.RevisionNotFoundError,): f"has no revision '{revision}'; {page} lists them",
    }
    for kinds, message in messages.items():
        if any(isinstance(cause, kinds) for cause in _causes(error)):
            return f"'{repository}' {message}"
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
    from huggingface_hub.utils._http import parse_ratelimit_headers

    response = _response(error)
    if response is None:
        return None
    limit = parse_ratelimit_headers(response.headers)
    if limit is not None and not limit.remaining:
        return limit.reset_in_seconds + 1.0
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else None


def _transfer_problem(error: BaseException, repository: str, kind: str) -> str | None:
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
    again = "run the same command again: complete files are kept"
    for cause in _causes(error):
        if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
            return f"the disk is full while downloading '{repository}'; free some space and {again}"
        if _is_incomplete(cause):
            return f"a file of '{repository}' arrived incomplete; {again}"
        if _is_unanswered(cause):
            return (
                f"{constants.ENDPOINT} does not answer for '{repository}' ({first_line(cause)}); "
                f"check network and proxy, or {LOCAL[kind]}"
            )
    return None


def connection_error() -> type[Exception]:
    """Of the hub's HTTP library if nobody answers: httpx, since huggingface_hub 2 httpx2."""
    import huggingface_hub

    for kind in type(huggingface_hub.get_session()).__mro__:
        library = sys.modules[kind.__module__.partition(".")[0]]
        if error := getattr(library, "TransportError", None):
            return cast(type[Exception], error)
    return ConnectionError


def _is_unanswered(error: BaseException) -> bool:
    from huggingface_hub.errors import OfflineModeIsEnabled  # a ConnectionError, but it stays

    return isinstance(error, (connection_error(), ConnectionError)) and not isinstance(
        error, OfflineModeIsEnabled
    )


def _is_incomplete(error: BaseException) -> bool:
    return isinstance(error, OSError) and str(error).startswith("Consistency check failed")


def _response(error: BaseException) -> Any:
    """The HTTP response that an error is about, if any."""
    responses = (getattr(cause, "response", None) for cause in _causes(error))
    return next((response for response in responses if response is not None), None)


def _status(error: BaseException) -> int | None:
    response = _response(error)
    return None if response is None else int(response.status_code)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, what caused it, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
