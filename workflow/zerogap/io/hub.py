"""What the Hugging Face hub's errors mean, in one line with a remedy."""

import errno
import importlib
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
    from huggingface_hub import constants, errors

    page = f"{constants.ENDPOINT}/{'datasets/' if kind == 'dataset' else ''}{repository}"
    messages: dict[tuple[type[Exception], ...], str] = {
        (errors.OfflineModeIsEnabled,): "is not a local folder, and offline mode forbids "
        "contacting the hub; give a local folder, or check the key `offline` and HF_HUB_OFFLINE",
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


def _transfer_problem(error: BaseException, repository: str) -> str | None:
    from huggingface_hub import constants

    status, again = _status(error), "run the same command again"
    if status == 429:
        return (
            f"the hub limits your requests for '{repository}' (HTTP 429); wait a few minutes and "
            f"{again}, or {LOG_IN}, which raises the limit"
        )
    if status is not None and status >= 500:
        return (
            f"the hub fails for '{repository}' (HTTP {status}); see https://status.huggingface.co "
            f"and {again} later"
        )
    for cause in _causes(error):
        if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
            return f"the disk is full while downloading '{repository}'; free some space and {again}"
        if _is_unanswered(cause):
            return (
                f"{constants.ENDPOINT} does not answer for '{repository}' ({first_line(cause)}); "
                "check network and proxy, or give a local folder"
            )
    return None


def connection_error() -> type[Exception]:
    """Of the hub's HTTP library if nobody answers: httpx, since huggingface_hub 2 httpx2."""
    import huggingface_hub

    library = type(huggingface_hub.get_session()).__module__.partition(".")[0]
    error: type[Exception] = importlib.import_module(library).TransportError
    return error


def _is_unanswered(error: BaseException) -> bool:
    from huggingface_hub.errors import OfflineModeIsEnabled  # a ConnectionError, but it stays

    return isinstance(error, (connection_error(), ConnectionError)) and not isinstance(
        error, OfflineModeIsEnabled
    )


def _status(error: BaseException) -> int | None:
    responses = (getattr(cause, "response", None) for cause in _causes(error))
    return next((int(found.status_code) for found in responses if found is not None), None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, what caused it, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
