"""Assign GPUs to the jobs of a machine: every job locks free ones and sees no others.

Snakemake counts GPUs (`--resources gpu=2`) but does not say which ones a job gets; without a choice
every job of a workstation would run on the first. The locks are the kernel's, so a killed job
leaves none behind.
"""

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import filelock

from zerogap.errors import InputError

# A lock lasts until the last process that has its file descriptor ends: this one or a child.
_locks: list[int] = []


def claim(count: int = 1) -> None:
    """Reserve free GPUs for this process and its children; wait while there are too few.

    Call it before torch initialises CUDA, since it sets CUDA_VISIBLE_DEVICES. The GPUs are those
    named by that variable, or else all that torch sees. A GPU that the variable names twice is
    shared by two jobs.

    Nothing happens if there is no GPU, if this process has reserved its GPUs before, or if Slurm
    allocated exactly `count`. Jobs within a larger Slurm allocation divide it among themselves.

    Args:
        count: how many different GPUs.

    Raises:
        InputError: fewer than `count` GPUs are visible, or the folder of locks is another user's.
    """
    slots = _visible_slots()
    allocation = os.environ.get("SLURM_JOB_ID")
    if _locks or not slots or (allocation and len(slots) == count):
        return
    devices = list(dict.fromkeys(device for device, _ in slots))
    if count > len(devices):
        raise InputError(
            f"training.num_gpus is {count}, but the visible GPUs are "
            f"{', '.join(devices)}; lower the number, or extend CUDA_VISIBLE_DEVICES"
        )
    folder = Path(tempfile.gettempdir(), f"zerogap-gpus-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise InputError(
            f"{folder}: belongs to another user, who could block the GPUs; remove it, or set TMPDIR"
        )
    # The GPU names of an allocation are its own: another one may call a different GPU "0".
    scope = allocation or "machine"
    files = [
        (device, folder / f"{scope}-{device}-{number}".replace("/", "-"))
        for device, number in slots
    ]
    # One job at a time chooses: otherwise two jobs that need two GPUs each could end up waiting
    # for each other with one GPU each.
    with filelock.FileLock(folder / f"{scope}-choice"):
        locks = _lock_free_gpus(files, count)
        if not locks:
            print(f"waiting for {count} of the GPUs {', '.join(devices)}", file=sys.stderr)
        while not locks:
            time.sleep(0.5)
            locks = _lock_free_gpus(files, count)
    _locks.extend(locks.values())
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(locks)


def named() -> list[str] | None:
    """The GPUs in CUDA_VISIBLE_DEVICES, as often as it names them; None if it is not set."""
    variable = os.environ.get("CUDA_VISIBLE_DEVICES")
    if variable is None:
        return None
    return [name.strip() for name in variable.split(",") if name.strip() not in ("", "-1")]


def _visible_slots() -> list[tuple[str, int]]:
    """A slot per job: every visible GPU's first, then the second of those that are named twice."""
    devices = named()
    if devices is None:
        import torch  # takes seconds; jobs without it do not wait for the import

        devices = list(map(str, range(torch.cuda.device_count())))
    slots = [(device, devices[:place].count(device)) for place, device in enumerate(devices)]
    return sorted(slots, key=lambda slot: slot[1])


def _lock_free_gpus(files: Sequence[tuple[str, Path]], count: int) -> dict[str, int]:
    """Lock slots (GPU, lock file) of `count` different GPUs, all of them or none.

    Returns:
        GPU → file descriptor of its lock, inherited by child processes; empty if fewer are free.
    """
    locks: dict[str, int] = {}
    for device, path in files:
        if len(locks) == count or device in locks:
            continue
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if filelock.lock_descriptor(descriptor, blocking=False):
            os.set_inheritable(descriptor, True)
            locks[device] = descriptor
        else:
            os.close(descriptor)
    if len(locks) == count:
        return locks
    for descriptor in locks.values():
        os.close(descriptor)
    return {}
