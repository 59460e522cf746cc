"""The fork server: imports the modules it is given, then forks a process for every script."""

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from typing import Any

from zerogap.pipeline.forks import ADDRESS


def main(modules: Sequence[str]) -> None:
    """Serve until the run ends; in a forked process, run its script."""
    import torch

    # The driver of a GPU does not work in forked processes.
    if torch.cuda.is_available() or not _imported(modules):
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the jobs
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no supervisor is waited for
    if job := _next_job(os.environ[ADDRESS]):
        _run(**job)


def _imported(modules: Sequence[str]) -> bool:
    """Import modules; whether the run continues then."""
    for name in modules:
        if select.select([sys.stdin], [], [], 0)[0]:
            return False
        importlib.import_module(name)
    gc.enable()  # scripts disable it while they import
    gc.collect()
    gc.freeze()  # no forked process searches, and so copies, what is there
    return True


def _next_job(address: str) -> dict[str, Any] | None:
    """Fork for every script that is handed over; in the forked process, return the script."""
    with socket.socket(socket.AF_UNIX) as listener:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(address)  # of a server that was killed
        listener.bind(address)
        listener.listen()
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                return _supervised(connection)
            connection.close()
    os.unlink(address)
    return None


def _supervised(connection: socket.socket) -> dict[str, Any]:
    """Fork the process of a script, and return in it; this process reports how that one ends."""
    _, files, _, _ = socket.recv_fds(connection, 1, 3)
    job: dict[str, Any] = json.loads(connection.makefile().readline())
    print(job["words"][0], flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    process = os.fork()
    for number, file in enumerate(files):
        if process == 0:
            os.dup2(file, number)
        os.close(file)
    if process == 0:
        connection.close()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return job
    threading.Thread(target=_end_with, args=(connection, process), daemon=True).start()
    # Not reaped, so that its number is that of no other process, which `_end_with` could kill.
    end = os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    assert end  # noqa: S101 (it waits)
    code = end.si_status if end.si_code == os.CLD_EXITED else -end.si_status
    with contextlib.suppress(OSError):  # the other side may be gone
        connection.sendall(str(code).encode())
    os._exit(0)


def _end_with(connection: socket.socket, process: int) -> None:
    """Kill a process when the one that handed its script over is gone."""
    connection.recv(1)
    os.kill(process, signal.SIGKILL)


def _run(words: list[str], path: list[str], variables: dict[str, str], folder: str) -> None:
    """Run a script as Python does."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv[:] = words
    sys.path[:] = [os.path.dirname(os.path.realpath(words[0])), *path]
    runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
