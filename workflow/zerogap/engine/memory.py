"""What memory there is, whether an error says that it ran out, and copies to a device's."""

from pathlib import Path

import numpy as np
import psutil
import torch
from torch import Tensor


def free_bytes(device: torch.device) -> int:
    """Memory that can still be had: of the GPU, or of the machine within its control group."""
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + unused
    free = psutil.virtual_memory().available
    limit, used = (Path("/sys/fs/cgroup", name) for name in ("memory.max", "memory.current"))
    if limit.is_file() and limit.read_text().strip() != "max":
        free = min(free, int(limit.read_text()) - int(used.read_text()))
    return free


def to_device(values: np.ndarray | Tensor, device: torch.device) -> Tensor:
    """What lies on the host as a tensor on the device, without waiting for what the device does."""
    held = torch.as_tensor(values)
    if device.type == "cuda":
        return held.pin_memory().to(device, non_blocking=True)
    return held.to(device)


def is_exhausted(error: BaseException) -> bool:
    """Whether an error says that memory ran out: CUDA's, torch's CPU allocator's or numpy's."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or (
        isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
    )
