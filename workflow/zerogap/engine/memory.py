"""Memory helpers: free memory, detection of out-of-memory errors, host-to-device copies."""

from pathlib import Path
from typing import Any

import psutil
import torch
from numpy.typing import NDArray
from torch import Tensor


def free_bytes(device: torch.device) -> int:
    """Memory that can be allocated: on the GPU, or on the machine within its control group."""
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + unused
    free = psutil.virtual_memory().available
    limit, used = (Path("/sys/fs/cgroup", name) for name in ("memory.max", "memory.current"))
    if limit.is_file() and limit.read_text().strip() != "max":
        free = min(free, int(limit.read_text()) - int(used.read_text()))
    return free


def to_device(values: NDArray[Any] | Tensor, device: torch.device) -> Tensor:
    """Copy host values to the device without waiting for what the device is doing."""
    host = torch.as_tensor(values)
    if device.type == "cuda":
        return host.pin_memory().to(device, non_blocking=True)
    return host.to(device)


def is_exhausted(error: BaseException) -> bool:
    """Whether an error means out of memory: from CUDA, PyTorch's CPU allocator or numpy."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or (
        isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
    )
