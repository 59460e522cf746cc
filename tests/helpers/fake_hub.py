"""A local server that answers as the Hugging Face hub does, and fails as it does.

The failures are planned per file: each request takes the next one of the list, and a request
without a planned failure is answered properly.
"""

import contextlib
import hashlib
import json
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

COMMIT = "1" * 40
LIMITED, BROKEN, REFUSED = 429, 503, 403  # statuses
DROPPED, INCOMPLETE, HANGS = "dropped", "incomplete", "hangs"


class FakeHub:
    """Repositories with the same files on a server on the loopback interface.

    Attributes:
        files: name → content.
        other_files: part of a path → the files of repositories with it, if they have others.
        errors: part of a path → (status, X-Error-Code) with which the API refuses.
        failures: name of a file, or "api" → failures of the next requests.
        requests: (method, name, Range header) of every request so far.
        hang: seconds that a request hangs.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.other_files: dict[str, dict[str, bytes]] = {}
        self.errors: dict[str, tuple[int, str]] = {}
        self.failures: dict[str, list[str | int]] = {}
        self.requests: list[tuple[str, str, str | None]] = []
        self.hang = 3.0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))

    @property
    def endpoint(self) -> str:
        """The value of HF_ENDPOINT."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def files_of(self, path: str) -> dict[str, bytes]:
        """The files of the repository that a request is about."""
        return next((f for part, f in self.other_files.items() if part in path), self.files)

    def downloads(self, name: str) -> list[str | None]:
        """The Range header of every download of a file."""
        return [part for method, file, part in self.requests if (method, file) == ("GET", name)]

    @contextlib.contextmanager
    def running(self) -> Iterator["FakeHub"]:
        """Serve until the block ends."""
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()


def commit(path: str) -> str:
    """The commit that a request names, or that of `main`."""
    found = re.search(r"/([0-9a-f]{40})(/|\?|$)", path)
    return found[1] if found else COMMIT


def etag(content: bytes) -> str:
    """The hub's name for a file's content."""
    return hashlib.sha256(content).hexdigest()


def environment(endpoint: str, home: object) -> dict[str, str]:
    """The variables of a process that uses this hub, without a login."""
    return {
        "HF_ENDPOINT": endpoint,
        "HF_HUB_OFFLINE": "0",
        "HF_HOME": str(home),
        "HF_TOKEN": "",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DOWNLOAD_TIMEOUT": "1",
        "HF_HUB_ETAG_TIMEOUT": "1",
        "NO_PROXY": "127.0.0.1",
    }


def _handler(hub: FakeHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = unquote(self.path.partition("?")[0])
            name = path.partition("/resolve/")[2].partition("/")[2] or "api"
            if name == "api" and not path.startswith(("/api/models/", "/api/datasets/")):
                self.answer(b"", 404)
                return
            hub.requests.append((self.command, name, self.headers.get("Range")))
            planned = hub.failures.get(name, [])
            is_counted = self.command == "GET" or name == "api"
            failure = planned.pop(0) if planned and is_counted else None
            if failure == HANGS:
                time.sleep(hub.hang)
            if isinstance(failure, int):
                self.answer(b"", failure, {"Retry-After": "1"} if failure == LIMITED else {})
            elif name == "api":
                self.answer_api()
            else:
                self.answer_file(name, failure)

        do_HEAD = do_GET  # noqa: N815

        def answer_api(self) -> None:
            for part, (status, code) in hub.errors.items():
                if part in self.path:
                    self.answer(b"", status, {"X-Error-Code": code} if code else {})
                    return
            files = hub.files_of(self.path)
            answer: object = {
                "id": "someone/model",
                "sha": commit(self.path),
                "siblings": [{"rfilename": name} for name in files],
            }
            if "/tree/" in self.path:
                answer = [
                    {"type": "file", "path": name, "size": len(content), "oid": etag(content)}
                    for name, content in files.items()
                ]
            self.answer(json.dumps(answer).encode(), 200)

        def answer_file(self, name: str, failure: str | int | None) -> None:
            content = hub.files_of(self.path)[name]
            headers = {
                "ETag": f'"{etag(content)}"',
                "X-Repo-Commit": commit(self.path),
                "X-Linked-Size": str(len(content)),
            }
            start = int((self.headers.get("Range") or "bytes=0-")[6:].partition("-")[0])
            body = content[start:]
            if start:
                headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            if failure == INCOMPLETE:
                body = body[: len(body) // 2]
            self.answer(body, 206 if start else 200, headers, dropped=failure == DROPPED)

        def answer(
            self,
            body: bytes,
            status: int,
            headers: dict[str, str] | None = None,
            *,
            dropped: bool = False,
        ) -> None:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.send_response(status)
                for key, value in (headers or {}).items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body[: len(body) // 2] if dropped else body)
                if dropped:
                    self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    return Handler
