"""What the hub's errors mean."""

import errno

import httpx
import httpx2
import huggingface_hub
import pytest
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

from zerogap.io.hub import access_problem, hub_problem, is_transient, retry_after


def http_error(status, **headers):
    request = httpx.Request("GET", "https://huggingface.co/api/models/a/b")
    response = httpx.Response(status, headers=headers, request=request)
    return HfHubHTTPError(f"{status}", response=response)


def caused_by(cause):
    error = LocalEntryNotFoundError("cannot find the file on the disk")
    error.__cause__ = cause
    return error


class OwnClient(httpx.Client):
    """As `huggingface_hub.set_client_factory` takes it."""


@pytest.mark.parametrize(
    ("client", "library"), [(httpx.Client, httpx), (OwnClient, httpx), (httpx2.Client, httpx2)]
)
def test_a_hub_without_answer_is_recognised_by_every_http_library_it_uses(
    client, library, monkeypatch
):
    monkeypatch.setattr(huggingface_hub, "get_session", client)
    error = library.ConnectError("Name or service not known")
    assert is_transient(error)
    assert "does not answer for 'a/b' (Name or service" in hub_problem(error, "a/b", "main")
    assert hub_problem(error, "a/b", "main").endswith("or give a local folder")
    assert hub_problem(error, "a/b", "main", "dataset").endswith("or use local files")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (http_error(429, **{"Retry-After": "40"}), "wait 40 seconds and run the same command"),
        (http_error(429), "wait a few minutes and run the same command again, or log in with"),
        (http_error(502), "the hub fails for 'a/b' (HTTP 502); see https://status.huggingface.co"),
        (OSError("Consistency check failed: file should be"), "arrived incomplete; run the same"),
        (httpx.ReadTimeout("timed out"), "does not answer for 'a/b' (timed out); check network"),
    ],
)
def test_a_transient_error_says_when_to_try_again(error, message):
    for raised in (error, caused_by(error)):
        text = hub_problem(raised, "a/b", "main")
        assert message in text
        assert "\n" not in text
        assert is_transient(raised)
        assert access_problem(raised, "a/b", "main") is None


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (http_error(401), "the hub refuses 'a/b' (HTTP 401); log in with `hf auth login`"),
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full while downloading"),
        (ValueError("odd\nanswer"), "'a/b' cannot be read from the hub (odd); check name"),
    ],
)
def test_an_error_that_stays_is_not_tried_again(error, message):
    assert message in hub_problem(error, "a/b", "main")
    assert not is_transient(error)


def test_the_time_to_wait_is_that_of_the_answer():
    assert retry_after(caused_by(http_error(429, **{"Retry-After": "7"}))) == 7
    assert retry_after(http_error(429, **{"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"})) is None
    assert retry_after(ValueError()) is None
    window = {"ratelimit": '"api";r=0;t=55', "ratelimit-policy": '"fixed window";"api";q=500;w=300'}
    assert retry_after(http_error(429, **window)) == 56
