"""What the hub's errors mean."""

import errno

import httpx
import httpx2
import huggingface_hub
import pytest
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

from zerogap.io.hub import access_problem, hub_problem


def http_error(status):
    request = httpx.Request("GET", "https://huggingface.co/api/models/a/b")
    response = httpx.Response(status, request=request)
    return HfHubHTTPError(f"{status}", response=response)


def caused_by(cause):
    error = LocalEntryNotFoundError("cannot find the file on the disk")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_a_hub_without_answer_is_recognised_by_every_http_library_it_uses(library, monkeypatch):
    monkeypatch.setattr(huggingface_hub, "get_session", library.Client)
    error = library.ConnectError("Name or service not known")
    assert "does not answer for 'a/b' (Name or service" in hub_problem(error, "a/b", "main")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (http_error(429), "wait a few minutes and run the same command again, or log in with"),
        (http_error(502), "the hub fails for 'a/b' (HTTP 502); see https://status.huggingface.co"),
        (ConnectionError("reset"), "does not answer for 'a/b' (reset); check network and proxy"),
    ],
)
def test_a_transient_error_says_when_to_try_again(error, message):
    for raised in (error, caused_by(error)):
        text = hub_problem(raised, "a/b", "main")
        assert message in text
        assert "\n" not in text
        assert access_problem(raised, "a/b", "main") is None


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (http_error(401), "the hub refuses 'a/b' (HTTP 401); log in with `hf auth login`"),
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full while downloading"),
        (ValueError("odd\nanswer"), "'a/b' cannot be read from the hub (odd); check name"),
    ],
)
def test_any_other_error_has_its_remedy(error, message):
    assert message in hub_problem(error, "a/b", "main")
