import ctypes
import subprocess
import sys
from pathlib import Path

import numba
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from zerogap.engine.kernels import row_kernels
from zerogap.engine.kernels.row_kernels import RowKernel, arrays, rows


def make_kernel(described):
    def kernel(job):
        values, amount, total = arrays(job, described)
        for row in rows(job):
            for column in range(values.shape[1]):
                total[row] += values[row, column] * amount[0]

    return kernel


ADD_ROWS = RowKernel(make_kernel)


@pytest.mark.parametrize("num_threads", [1, 2, 3])
@settings(max_examples=40, deadline=None)
@given(num_rows=st.integers(1, 300), num_columns=st.integers(0, 3))
def test_every_row_is_computed_once(num_threads, num_rows, num_columns):
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    values, total = torch.rand(num_rows, num_columns), torch.zeros(num_rows)
    ADD_ROWS(num_rows, values, torch.tensor([3]), total)
    torch.set_num_threads(before)
    torch.testing.assert_close(total, 3 * values.sum(1))


def test_an_input_may_have_any_memory_layout():
    values, total = torch.rand(5, 20).T, torch.zeros(20)
    ADD_ROWS(20, values, torch.tensor([1]), total)
    torch.testing.assert_close(total, values.sum(1))


def test_each_type_of_arrays_has_a_compiled_version_of_its_own():
    kernel = RowKernel(make_kernel)
    for dtype in (torch.float32, torch.float64, torch.int64):
        values, total = torch.arange(6).view(3, 2).to(dtype), torch.zeros(3, dtype=dtype)
        kernel(3, values, torch.tensor([2]), total)
        assert total.tolist() == [2, 10, 18]


def test_bfloat16_arrives_as_its_bits():
    values = torch.tensor([[1.0], [-2.0]]).bfloat16()
    total = torch.zeros(2, dtype=torch.int64)
    ADD_ROWS(2, values, torch.tensor([1]), total)
    assert total.tolist() == [0x3F80, 0xC000]


def test_kernels_run_on_pytorchs_threads(threads, monkeypatch):
    if row_kernels._openmp_parallel() is None:
        pytest.skip("this PyTorch does not use GNU OpenMP")
    threads(3)
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib/libtorch_cpu.so"))
    assert library.omp_get_max_threads() == 3
    parallel, calls = row_kernels._openmp_parallel(), []

    def recorded(function, job, num_threads, flags):
        calls.append(num_threads)
        parallel(function, job, num_threads, flags)

    monkeypatch.setattr(row_kernels, "_openmp_parallel", lambda: recorded)
    values, total = torch.rand(300, 2), torch.zeros(300)
    ADD_ROWS(300, values, torch.tensor([1]), total)
    assert calls == [3]
    torch.testing.assert_close(total, values.sum(1))


def test_where_pytorch_has_other_threads_the_caller_computes_all_rows(threads, monkeypatch):
    threads(2)
    monkeypatch.setattr(row_kernels, "_openmp_parallel", lambda: None)
    values, total = torch.rand(100, 2), torch.zeros(100)
    ADD_ROWS(100, values, torch.tensor([1]), total)
    torch.testing.assert_close(total, values.sum(1))


def test_without_a_cache_folder_kernels_are_compiled_in_memory(monkeypatch):
    monkeypatch.setattr(numba.core.caching.CompileResultCacheImpl, "_locator_classes", [])
    with pytest.raises(RuntimeError, match="cannot cache"):
        numba.njit(cache=True)(lambda x: x + 1)
    total = torch.zeros(4)
    RowKernel(make_kernel)(4, torch.ones(4, 2), torch.tensor([1]), total)
    assert total.tolist() == [2] * 4


KERNEL_IN_A_FILE = """
import torch
from zerogap.engine.kernels.row_kernels import RowKernel, arrays, rows

def make(described):
    def kernel(job):
        (values,) = arrays(job, described)
        for row in rows(job):
            values[row] *= {factor}
    return kernel

scale = RowKernel(make)
for dtype in (torch.float32, torch.int64):
    values = torch.ones(3, dtype=dtype)
    scale(3, values)
    print(values.tolist() == [{factor}] * 3, *[x.cache_hits for x in scale._compiled.values()])
"""


def test_compiled_code_is_cached_until_the_kernels_file_changes(tmp_path):
    def run(factor):
        module = tmp_path / "kernel_in_a_file.py"
        text = KERNEL_IN_A_FILE.format(factor=factor)
        if not module.exists() or module.read_text() != text:
            module.write_text(text)
        command = [sys.executable, "-c", "import kernel_in_a_file"]
        output = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return output.stdout.splitlines()

    assert run(2) == ["True 0", "True 0 0"]
    assert run(2) == ["True 1", "True 1 1"]
    assert run(35) == ["True 0", "True 0 0"]


def test_a_change_of_any_file_that_kernels_are_compiled_from_changes_the_digest(tmp_path):
    def digest():
        row_kernels._sources_digest.cache_clear()
        return row_kernels._sources_digest(tmp_path)

    for path in Path(row_kernels.__file__).parent.glob("*.py"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    digests = [digest()]
    assert digests == [row_kernels._sources_digest()]
    for name in ("row_kernels", "vector_code", "cpu_rows", "cpu_own_tokens"):
        with (tmp_path / f"{name}.py").open("a") as file:
            file.write("# changed\n")
        digests.append(digest())
    assert len(set(digests)) == 5
    kernel, total = RowKernel(make_kernel), torch.zeros(4)
    kernel(4, torch.ones(4, 2), torch.tensor([1]), total)
    ((described,),) = kernel._compiled
    assert described.startswith(digests[0])
