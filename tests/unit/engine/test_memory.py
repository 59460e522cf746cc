"""Memory: free, run out of, freed; low precision where a CPU is slow in it."""

import ctypes
import errno
import subprocess
import sys
from contextlib import nullcontext

import pytest
import torch

from helpers.tiny_models import model
from zerogap import precision
from zerogap.engine import loading, memory
from zerogap.errors import InputError

MIB = 2**20
GROUPS = "job", "job/step"
VERSION_2 = {"memory.max": 600 * MIB, "memory.current": 500 * MIB}
VERSION_1 = {"memory/memory.limit_in_bytes": 600 * MIB, "memory/memory.usage_in_bytes": 500 * MIB}


@pytest.fixture
def control_group(tmp_path, monkeypatch):
    """Write the files of a control group; the machine has 1,000 MiB free."""
    monkeypatch.setattr(memory, "CONTROL_GROUP_ROOT", tmp_path)
    monkeypatch.setattr(memory, "OWN_CONTROL_GROUPS", tmp_path / "own")
    (tmp_path / "own").write_text("3:cpu:/\n5:cpuset,memory:/job/step\n0::/job/step\n")
    monkeypatch.setattr(
        memory.psutil, "virtual_memory", lambda: type("Memory", (), {"available": 1000 * MIB})
    )

    def write(files, **stat):
        for name, value in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(f"{value}\n")
            lines = "".join(f"{key} {number}\n" for key, number in stat.items())
            (tmp_path / name).with_name("memory.stat").write_text(lines)

    return write


def inside(group, files):
    """The files of a control group below the root."""
    names = {name: name.rpartition("/") for name in files}
    return {f"{a}/{group}/{b}".lstrip("/"): files[name] for name, (a, _, b) in names.items()}


@pytest.mark.parametrize(
    ("files", "statistics", "free"),
    [
        ({}, {}, 1000),
        (VERSION_2, {"anon": 400 * MIB, "inactive_file": 30 * MIB}, 130),  # cached files can go
        (VERSION_1, {"anon": 400 * MIB, "total_inactive_file": 30 * MIB}, 130),
        *((inside(group, files), {}, 100) for group in GROUPS for files in (VERSION_2, VERSION_1)),
        (VERSION_2 | {"memory.max": "max"}, {}, 1000),
        (VERSION_1 | {next(iter(VERSION_1)): 2**63 - 4096}, {}, 1000),
    ],
)
def test_memory_is_limited_by_every_control_group_above_the_process(
    files, statistics, free, control_group
):
    control_group(files, **statistics)
    assert memory.free_bytes(torch.device("cpu")) / MIB == free


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ],
)
def test_errors_of_every_allocator_mean_out_of_memory(error):
    assert memory.is_exhausted(error)
    assert not memory.is_exhausted(RuntimeError("CUDA error: device-side assert triggered"))
    assert not memory.is_exhausted(FileNotFoundError())


@pytest.mark.parametrize("fitting", [50, 49])
def test_batches_are_halved_down_to_one_question_which_must_fit(fitting):
    sizes, messages = [], []

    def attempt(batch_size):
        sizes.append(batch_size)
        if batch_size > fitting:
            raise MemoryError

    problem = pytest.raises(InputError, match="one question takes 50 samples")
    with nullcontext() if fitting == 50 else problem:
        _, used = memory.within_memory(attempt, 198, num_samples=50, on_retry=messages.append)
        assert used == 50
    assert sizes == [198, 99, 50]
    assert len(messages) == 2


START = """
import psutil, resource, torch
from zerogap.engine import memory

def used():
    return psutil.Process().memory_info().rss / 2**20

"""
COUNT_PAGES = """
memory.keep_freed_memory()
pages = []
for _ in range(40):
    torch.ones(2**24), torch.ones(2**22)
    pages.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
print(pages[-1] - pages[20])
"""
WRITE_A_PART = """
before = used()
zeros = memory.mapped_zeros((64, 2**20), torch.float32)
zeros[:, 0] = 1
print(used() - before)
"""
RETURN_ONE_OF_TWO = """
memory.keep_freed_memory()
tensors = [memory.mapped_zeros((2**20,), torch.float32).fill_(1) for _ in range(64)]
before = used()
del tensors[::2]
print(used() - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="this is not glibc")
@pytest.mark.parametrize(
    ("program", "most"),
    [
        (COUNT_PAGES, 1000),  # of the 20,480 pages of 80 MiB, 19 times
        (WRITE_A_PART, 20),  # of 256 MiB: memory is taken when it is written
        (RETURN_ONE_OF_TWO, -100),  # of 32 tensors of 4 MiB between others
    ],
    ids=["freed memory is used again", "mapped as it is written", "mapped memory returns"],
)
def test_memory_is_used_again_taken_late_and_returned(program, most):
    command = [sys.executable, "-c", START + program]
    output = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(output.stdout) < most


CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.fixture(params=[0.5, 1.4, 45.0], ids=["fast", "emulating", "slow"])
def cpu_is_slow(request, monkeypatch) -> bool:
    """A CPU with instructions for low precision, one that emulates them, one without a kernel."""
    monkeypatch.setattr(precision, "slowdown", lambda dtype: request.param)
    return request.param > 1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_only_a_cpu_that_is_slow_in_a_precision_uses_float32_instead(cpu_is_slow, dtype) -> None:
    replaced = cpu_is_slow and dtype.itemsize == 2
    assert precision.usable_dtype(dtype, CPU) == (torch.float32 if replaced else dtype)
    assert precision.usable_dtype(dtype, GPU) == dtype


def test_a_model_that_does_not_fit_into_memory_is_one_clear_error(tmp_path, monkeypatch) -> None:
    def exhausted(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    monkeypatch.setattr(loading, "read_model", exhausted)
    with pytest.raises(InputError, match=r"does not fit into the memory of .* 2 GiB\); use"):
        loading.load(tmp_path, "float32")


def test_a_model_is_loaded_in_float32_with_the_reason_where_bfloat16_is_slow(
    cpu_is_slow, tmp_path, capsys
) -> None:
    model("llama").bfloat16().save_pretrained(tmp_path)
    loading._warn_of_cpu.cache_clear()  # it is said once per process
    loaded = loading.load(tmp_path, "bfloat16")
    assert loaded.dtype == (torch.float32 if cpu_is_slow else torch.bfloat16)
    reason = "in float32, because this CPU is slow in bfloat16."
    assert (reason in capsys.readouterr().err) == cpu_is_slow
