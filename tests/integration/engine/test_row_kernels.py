import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import zerogap
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
    assert values.tolist() == [{factor}] * 3
"""


def test_compiled_code_is_cached_until_a_file_changes_that_it_is_compiled_from(tmp_path):
    """The kernel's own file, or another one of the folder of kernels."""
    package = Path(zerogap.__file__).parent
    shutil.copytree(package, tmp_path / "zerogap", ignore=shutil.ignore_patterns("__pycache__"))
    environment = os.environ | {"NUMBA_DEBUG_CACHE": "1", "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", "import kernel_in_a_file"]

    def loaded_and_saved():
        run = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return run.stdout.count("data loaded from"), run.stdout.count("data saved to")

    kernel = tmp_path / "kernel_in_a_file.py"
    kernel.write_text(KERNEL_IN_A_FILE.format(factor=2))
    assert loaded_and_saved() == (0, 2)
    assert loaded_and_saved() == (2, 0)
    kernel.write_text(KERNEL_IN_A_FILE.format(factor=35))
    assert loaded_and_saved() == (0, 2)
    with (tmp_path / "zerogap/engine/kernels/vector_code.py").open("a") as file:
        file.write("# changed\n")
    assert loaded_and_saved() == (0, 2)


@pytest.mark.parametrize(("given", "used"), [({}, "5000"), ({"GOMP_SPINCOUNT": "70"}, "70")])
def test_threads_wait_actively_only_for_a_moment_unless_told_otherwise(given, used):
    environment = {name: value for name, value in os.environ.items() if name != "GOMP_SPINCOUNT"}
    process = subprocess.run(
        [sys.executable, "-c", "import zerogap.engine.sampler"],
        env=environment | given | {"OMP_DISPLAY_ENV": "verbose"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"GOMP_SPINCOUNT = '{used}'" in process.stderr
