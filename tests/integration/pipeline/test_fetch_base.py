"""Downloads from a hub that is gated, limited, slow, broken or cuts files short."""

import json

import pytest

from helpers.fake_hub import (
    BROKEN,
    COMMIT,
    DROPPED,
    HANGS,
    INCOMPLETE,
    LIMITED,
    REFUSED,
    FakeHub,
    environment,
)
from helpers.scripts import run_script

WEIGHTS = bytes(range(256)) * 4000
FILES = {
    "config.json": b'{"model_type": "llama"}',
    "model-00001-of-00002.safetensors": WEIGHTS,
    "model-00002-of-00002.safetensors": WEIGHTS[::-1],
}
OTHERS = {
    "model.bin": b"another format",
    "consolidated.safetensors": b"a second copy",
    "original/model.safetensors": b"a third one",
}
FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


@pytest.fixture
def hub():
    with FakeHub(FILES | OTHERS).running() as hub:
        yield hub


@pytest.fixture
def fetch(hub, tmp_path):
    """Run the script on the fake hub: exit code, output, and the model's folder."""
    output = tmp_path / "base"
    parameters = {"repository": "someone/model", "revision": "main"}

    def run(endpoint=hub.endpoint):
        process = run_script(
            "fetch_base",
            tmp_path,
            parameters,
            output=output,
            env=environment(endpoint, tmp_path / "home"),
        )
        return process.returncode, process.stdout + process.stderr, output

    return run


def is_complete(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()} == {
        **FILES,
        "origin.json": (folder / "origin.json").read_bytes(),
    }


def one_line_error(code, text):
    assert code == 1
    assert "Traceback" not in text
    (line,) = (line for line in text.splitlines() if line.startswith("error: "))
    assert text.splitlines()[-1] == line
    return line


def test_the_model_and_its_commit_are_stored_and_nothing_else(fetch):
    code, text, folder = fetch()
    assert code == 0, text
    assert is_complete(folder)
    assert json.loads((folder / "origin.json").read_text())["commit"] == COMMIT
    assert not folder.with_name("base.work").exists()


@pytest.mark.parametrize("failures", [[LIMITED, HANGS], [BROKEN, DROPPED], [INCOMPLETE]])
def test_a_download_survives_failures_that_pass(hub, fetch, failures):
    hub.failures = dict(zip((FIRST, SECOND), ([one] for one in failures), strict=False))
    code, text, folder = fetch()
    assert code == 0, text
    assert is_complete(folder)


def test_a_dropped_connection_resumes_in_the_middle_of_the_file(hub, fetch):
    from huggingface_hub.constants import DOWNLOAD_CHUNK_SIZE  # a part of a chunk is not kept

    hub.files = FILES | {FIRST: bytes(3 * DOWNLOAD_CHUNK_SIZE)}
    hub.failures = {FIRST: [DROPPED]}
    code, text, folder = fetch()
    assert code == 0, text
    assert (folder / FIRST).read_bytes() == hub.files[FIRST]
    assert hub.downloads(FIRST) == [None, f"bytes={DOWNLOAD_CHUNK_SIZE}-"]


def test_an_interrupted_download_keeps_the_complete_files(hub, fetch):
    hub.failures = {SECOND: [REFUSED] * 100}
    code, text, folder = fetch()
    line = one_line_error(code, text)
    assert "the hub refuses 'someone/model' (HTTP 403)" in line
    assert not folder.exists()
    hub.failures = {}
    hub.requests.clear()
    code, text, folder = fetch()
    assert code == 0, text
    assert is_complete(folder)
    assert hub.downloads(FIRST) == []
    assert hub.downloads(SECOND) == [None]
