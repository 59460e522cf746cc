"""Several jobs on one workstation: real processes, invented GPUs."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from helpers.paths import ROOT

JOB = """
import os, sys
from zerogap import gpus
from zerogap.errors import InputError
try:
    gpus.claim({count})
except InputError as error:
    sys.exit(f"error: {{error}}")
print(os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
{then}
"""
WAIT = "sys.stdin.read()"  # until the test ends the job


@pytest.fixture
def start(tmp_path) -> Iterator[Callable[..., subprocess.Popen]]:
    """Start jobs that see the same GPUs; the end of the test kills them."""
    started = []

    def start(visible, count=1, then=WAIT, **environment) -> subprocess.Popen:
        variables = {"PYTHONPATH": "workflow", "TMPDIR": str(tmp_path), **environment}
        if visible is not None:
            variables["CUDA_VISIBLE_DEVICES"] = visible
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", JOB.format(count=count, then=then)],
                cwd=ROOT,
                env=variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return started[-1]

    yield start
    for job in started:
        end(job, signal.SIGKILL)


def end(job: subprocess.Popen, signal_number: int = signal.SIGTERM) -> None:
    if job.returncode is None:
        job.send_signal(signal_number)
        job.communicate()


def gpus_of(job: subprocess.Popen) -> str:
    """The job's CUDA_VISIBLE_DEVICES; waits until it has its GPUs."""
    return job.stdout.readline().strip()


def waiting_message(job: subprocess.Popen) -> str:
    """The message of a job that finds no GPU free; waits until there is one."""
    return job.stderr.readline()


def test_every_job_gets_a_gpu_of_its_own(start):
    assert {gpus_of(start("0,GPU-8932f937,5")) for _ in range(3)} == {"0", "GPU-8932f937", "5"}


def test_a_job_waits_for_the_gpu_of_a_job_that_is_killed(start):
    first, second = start("0,1"), start("0,1")
    by_gpu = {gpus_of(first): first, gpus_of(second): second}
    third = start("0,1")
    assert "waiting for 1 of the GPUs 0, 1" in waiting_message(third)
    end(by_gpu["1"], signal.SIGKILL)
    assert gpus_of(third) == "1"


def test_a_gpu_named_twice_is_shared_by_two_jobs_once_the_others_are_in_use(start):
    devices = [gpus_of(start("0,0,1")) for _ in range(3)]
    assert devices == ["0", "1", "0"]
    assert "waiting" in waiting_message(start("0,0,1"))


def test_a_training_locks_as_many_different_gpus_as_it_needs_at_once(start):
    training, other = start("0,0,1,2", count=2), start("0,0,1,2")
    first, second = gpus_of(training).split(","), gpus_of(other).split(",")
    assert len(set(first)) == 2
    assert len(second) == 1
    waiting = start("0,0,1,2", count=3)
    assert "waiting for 3" in waiting_message(waiting)
    end(training)
    end(other)
    assert gpus_of(waiting) == "0,1,2"


def test_jobs_that_see_different_gpus_do_not_block_each_other(start):
    assert gpus_of(start("0,1", count=2)) == "0,1"
    assert gpus_of(start("1,2")) == "2"


def test_more_gpus_than_are_visible_are_an_error_that_names_the_config_key(start):
    _, message = start("0,0", count=2).communicate()
    assert "error: training.num_gpus is 2, but the visible GPUs are 0; lower the" in message


@pytest.mark.parametrize("visible", ["", "-1"])
def test_nothing_happens_without_gpus(start, tmp_path, visible):
    assert [gpus_of(start(visible)) for _ in range(2)] == [visible, visible]
    assert not list(tmp_path.iterdir())


def test_a_slurm_job_does_not_lock_the_gpus_allocated_to_it(start, tmp_path):
    """Every job on a node sees its own GPU as number 0."""
    assert [gpus_of(start("0", SLURM_JOB_ID=number)) for number in ("7", "8")] == ["0", "0"]
    assert gpus_of(start("0,1", count=2, SLURM_JOB_ID="9")) == "0,1"
    assert not list(tmp_path.iterdir())


def test_jobs_within_one_slurm_allocation_divide_its_gpus(start):
    assert {gpus_of(start("0,1", SLURM_JOB_ID="7")) for _ in range(2)} == {"0", "1"}
    assert gpus_of(start("0,1", SLURM_JOB_ID="8")) == "0"


def test_a_second_claim_in_one_process_keeps_the_gpus_of_the_first(start):
    then = "gpus.claim(); print(os.environ['CUDA_VISIBLE_DEVICES'], flush=True)"
    job = start("3,4", then=then)
    assert [gpus_of(job), gpus_of(job)] == ["3", "3"]


def test_a_child_of_a_killed_job_keeps_the_gpu_while_it_runs(start):
    """LLaMA-Factory starts such children: they are still on the GPU."""
    then = (
        "import subprocess; child = subprocess.Popen([sys.executable, '-c', 'input()'],"
        " close_fds=False, stdout=subprocess.DEVNULL); print(child.pid, flush=True); child.wait()"
    )
    job = start("0", then=then)
    assert gpus_of(job) == "0"
    child = int(gpus_of(job))
    waiting = start("0")
    job.kill()
    job.wait()
    assert "waiting" in waiting_message(waiting)
    os.kill(child, signal.SIGKILL)
    assert gpus_of(waiting) == "0"


def test_without_the_variable_the_gpus_are_those_that_torch_sees(start, tmp_path):
    (tmp_path / "torch.py").write_text("class cuda:\n    device_count = staticmethod(lambda: 2)\n")
    path = f"workflow{os.pathsep}{tmp_path}"
    assert {gpus_of(start(None, PYTHONPATH=path)) for _ in range(2)} == {"0", "1"}


def test_a_folder_of_locks_that_another_user_could_have_made_is_refused(start, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"zerogap-gpus-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    job = start("0")
    assert "belongs to another user" in job.communicate(timeout=60)[1]
