"""Free memory, what a process keeps of it, and smaller batches when it runs out."""

import contextlib
import ctypes
import errno
import gc
import math
import mmap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import psutil
import torch

from zerogap.errors import InputError, first_line

Result = TypeVar("Result")

OUT_OF_MEMORY = (  # in errors that have no class of their own
    "can't allocate memory",  # PyTorch on a CPU
    "CUDA error: out of memory",  # the driver, outside PyTorch's allocator
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "Triton Error [CUDA]: out of memory",  # a kernel that is loaded into a full GPU
)
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # glibc's numbers of these options
CONTROL_GROUP_ROOT = Path("/sys/fs/cgroup")
OWN_CONTROL_GROUPS = Path("/proc/self/cgroup")
# A control group's files of the largest and the used memory, and the key of cached files in a third
_VERSION_2 = "memory.max", "memory.current", "inactive_file"
_VERSION_1 = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"


def free_bytes(device: torch.device) -> float:
    """Memory that can be allocated: on the GPU, or on the machine within the control groups.

    A job of a cluster is limited by its own control group and all those above it.
    """
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + unused
    return min([psutil.virtual_memory().available, *_control_groups_free_bytes()])


def _control_groups_free_bytes() -> Iterator[float]:
    """What this process's control groups leave, and all those above them."""
    lines = OWN_CONTROL_GROUPS.read_text().splitlines() if OWN_CONTROL_GROUPS.is_file() else []
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers == "":
            root, files = CONTROL_GROUP_ROOT, _VERSION_2
        elif "memory" in controllers.split(","):
            root, files = CONTROL_GROUP_ROOT / "memory", _VERSION_1
        else:
            continue
        # In a container the name may be that of the host, of which only the root is there.
        folder = root / name.lstrip("/")
        for group in (folder, *folder.parents):
            if group.is_relative_to(root):
                yield _left_by(group, *files)


def _left_by(group: Path, limit: str, used: str, cached: str) -> float:
    """What a control group leaves; cached files count as free, since they can go."""
    if not (group / limit).is_file() or (most := (group / limit).read_text().strip()) == "max":
        return math.inf
    lines = (group / "memory.stat").read_text().splitlines()
    cached_bytes = dict(line.split() for line in lines).get(cached, 0)
    return int(most) - int((group / used).read_text()) + int(cached_bytes)


def keep_freed_memory() -> None:
    """Let this process keep freed memory of up to two gigabytes, where its C library is glibc.

    By default glibc returns the memory of a decoding step to the system and requests it again, page
    by page, for the next step, which takes about a quarter longer then.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_TRIM_THRESHOLD, 2**31 - 1)
        set_option(_MMAP_THRESHOLD, 2**30)


class Storage:
    """Memory on the CPU that tensors of different sizes take one after the other.

    New memory of hundreds of megabytes for each of them would be mapped page by page, which takes a
    tenth of a decoding step, or, where freed memory is kept, leave ever more holes.
    """

    def __init__(self) -> None:
        self._memory = torch.empty(0)

    def tensor(self, shape: tuple[int, int], dtype: torch.dtype) -> torch.Tensor:
        """A tensor of any values, which overwrites the one before."""
        count = math.prod(shape)
        if len(self._memory) < count or self._memory.dtype != dtype:
            self._memory = torch.empty(0)  # freed first
            self._memory = torch.empty(count, dtype=dtype)
        return self._memory[:count].view(shape)


def mapped_zeros(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Zeros (shape) on the CPU, in pages that return to the system with the tensor.

    A page takes memory when it is written, so a tensor may be as large as it could ever have to be.
    Pages are small: with huge ones, the first token of a row would take those of other rows too.
    """
    count = math.prod(shape)
    pages = mmap.mmap(-1, count * dtype.itemsize, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # a kernel without huge pages
        pages.madvise(mmap.MADV_NOHUGEPAGE)
    return torch.frombuffer(pages, dtype=dtype).view(shape)


def is_exhausted(error: BaseException) -> bool:
    """Whether an error means out of memory: from CUDA, PyTorch's CPU allocator, numpy or mmap."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or (
        isinstance(error, RuntimeError) and any(text in str(error) for text in OUT_OF_MEMORY)
    )


def release() -> None:
    """Collect unreachable tensors, and return their memory to the device."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def within_memory(
    attempt: Callable[[int], Result],
    batch_size: int,
    *,
    num_samples: int = 1,
    on_retry: Callable[[str], None],
) -> tuple[Result, int]:
    """Call a function with a batch size, with half of it each time memory runs out.

    The smallest one is that of one question, `num_samples`; `on_retry` gets a message before every
    further attempt. Returns the function's result and the batch size that it succeeded with.

    Raises:
        InputError: one question alone does not fit into memory.
    """
    while True:
        try:
            return attempt(batch_size), batch_size
        except Exception as error:
            if not is_exhausted(error):
                raise
            reason = first_line(error)
        # Outside the `except` block: the traceback there keeps the tensors alive.
        if batch_size <= num_samples:
            samples, remedy = "", "fewer new tokens or a larger device"
            if num_samples > 1:
                samples = f", and one question takes {num_samples} samples"
                remedy = f"fewer samples, {remedy}"
            raise InputError(
                f"out of memory with batch_size {batch_size}{samples}: use {remedy} ({reason})"
            )
        batch_size = max(num_samples, batch_size // 2)
        on_retry(f"out of memory ({reason}); continuing with batch_size {batch_size}")
        release()
