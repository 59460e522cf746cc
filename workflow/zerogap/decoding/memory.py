"""What memory there is, and whether an error says that it ran out."""

from pathlib import Path

import psutil
import torch


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


def is_exhausted(error: BaseException) -> bool:
    """Whether an error says that memory ran out: CUDA's, torch's CPU allocator's or numpy's."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or (
        isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
    )
