"""Which of a machine's GPUs a job runs on: it locks free ones and sees no others.

Snakemake counts GPUs (`--resources gpu=2`) but does not say which: without a choice every job of a
workstation would run on the first one. The locks are the kernel's: a killed job leaves none.
"""

import fcntl
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from zerogap.errors import InputError

_held: list[int] = []  # file descriptors: a lock lasts until the last process that has it ends


def claim(count: int = 1) -> None:
    """Take free GPUs for this process and its children, waiting for them if need be.

    To be called before torch starts CUDA, since it sets CUDA_VISIBLE_DEVICES. The GPUs are those of
    that variable, or else all that torch sees; one that the variable names twice is shared by two
    jobs. Nothing happens where there is none, if this process took its GPUs before, or if Slurm
    allocated no more than are wanted. Jobs within one larger allocation share it out among
    themselves: its GPUs are its own, whatever they are called.

    Args:
        count: how many different GPUs.

    Raises:
        InputError: fewer are visible.
    """
    places = _places()
    allocation = os.environ.get("SLURM_JOB_ID")
    if _held or not places or (allocation and len(places) == count):
        return
    visible = list(dict.fromkeys(device for device, _ in places))
    if count > len(visible):
        raise InputError(
            f"{count} GPUs are wanted (training.gpus), but {len(visible)} can be seen: "
            f"{', '.join(visible)}"
        )
    folder = Path(tempfile.gettempdir(), f"zerogap-gpus-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    scope = allocation or "machine"
    files = {place: folder / f"{scope}-{place[0]}-{place[1]}".replace("/", "-") for place in places}
    with (folder / f"{scope}-choice").open("w") as choice:
        # One job at a time chooses: two that need two GPUs each must not end up with one.
        fcntl.flock(choice, fcntl.LOCK_EX)
        taken = _take(files, count)
        if taken is None:
            print(f"waiting for {count} of the GPUs {', '.join(visible)}", file=sys.stderr)
        while taken is None:
            time.sleep(0.5)
            taken = _take(files, count)
    _held.extend(taken.values())
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(taken)


def _places() -> list[tuple[str, int]]:
    """(device, how often it was named before) of every visible GPU, emptier devices first."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        import torch  # seconds, which a job without it does not wait for otherwise

        devices = list(map(str, range(torch.cuda.device_count())))
    else:
        devices = [name.strip() for name in named.split(",") if name.strip() not in ("", "-1")]
    seen: Counter[str] = Counter()
    places = []
    for device in devices:
        places.append((device, seen[device]))
        seen[device] += 1
    return sorted(places, key=lambda place: place[1])


def _take(files: dict[tuple[str, int], Path], count: int) -> dict[str, int] | None:
    """Device → descriptor of `count` locks that nobody held; None, and no lock, for fewer."""
    taken: dict[str, int] = {}
    for (device, _), path in files.items():
        if len(taken) == count or device in taken:
            continue
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        os.set_inheritable(descriptor, True)
        taken[device] = descriptor
    if len(taken) == count:
        return taken
    for descriptor in taken.values():
        os.close(descriptor)
    return None
