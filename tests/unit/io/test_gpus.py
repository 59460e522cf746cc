"""Jobs side by side on a workstation: real processes, made-up GPUs."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

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
WAIT = "sys.stdin.read()"  # until the test lets the job end


class Jobs:
    """Starts jobs that see the same GPUs, and ends them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: list[subprocess.Popen] = []

    def start(
        self, visible: str | None, count: int = 1, then: str = WAIT, **environment: str
    ) -> subprocess.Popen:
        surroundings = {"PYTHONPATH": "workflow", "TMPDIR": str(self.folder), **environment}
        if visible is not None:
            surroundings["CUDA_VISIBLE_DEVICES"] = visible
        job = subprocess.Popen(
            [sys.executable, "-c", JOB.format(count=count, then=then)],
            cwd=ROOT,
            env=surroundings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.running.append(job)
        return job

    def end(self, job: subprocess.Popen, by: int = signal.SIGTERM) -> None:
        job.send_signal(by)
        job.communicate()
        self.running.remove(job)


@pytest.fixture
def jobs(tmp_path) -> Iterator[Jobs]:
    made = Jobs(tmp_path)
    yield made
    for job in list(made.running):
        made.end(job, signal.SIGKILL)


def sees(job: subprocess.Popen) -> str:
    """The job's CUDA_VISIBLE_DEVICES; waits until it has its GPUs."""
    return job.stdout.readline().strip()


def waits(job: subprocess.Popen) -> str:
    """What a job says that finds no GPU free; waits until it does."""
    return job.stderr.readline()


def test_jobs_side_by_side_have_a_gpu_each(jobs):
    assert {sees(jobs.start("0,GPU-8932f937,5")) for _ in range(3)} == {"0", "GPU-8932f937", "5"}


def test_one_more_job_waits_for_the_gpu_that_a_killed_one_leaves(jobs):
    first, second = jobs.start("0,1"), jobs.start("0,1")
    held = {sees(first): first, sees(second): second}
    third = jobs.start("0,1")
    assert "waiting for 1 of the GPUs 0, 1" in waits(third)
    jobs.end(held["1"], signal.SIGKILL)
    assert sees(third) == "1"


def test_a_gpu_that_is_named_twice_is_shared_by_two_after_the_others_are_taken(jobs):
    taken = [sees(jobs.start("0,0,1")) for _ in range(3)]
    assert taken == ["0", "1", "0"]
    assert "waiting" in waits(jobs.start("0,0,1"))


def test_a_training_takes_as_many_different_gpus_as_it_asks_for_at_once(jobs):
    training, other = jobs.start("0,0,1,2", count=2), jobs.start("0,0,1,2")
    first, second = sees(training).split(","), sees(other).split(",")
    assert len(set(first)) == 2
    assert len(second) == 1
    waiting = jobs.start("0,0,1,2", count=3)
    assert "waiting for 3" in waits(waiting)
    jobs.end(training)
    jobs.end(other)
    assert sees(waiting) == "0,1,2"


def test_runs_that_see_different_gpus_do_not_clash(jobs):
    assert sees(jobs.start("0,1", count=2)) == "0,1"
    assert sees(jobs.start("1,2")) == "2"


def test_more_gpus_than_there_are_is_an_error_that_names_the_key(jobs):
    _, said = jobs.start("0,0", count=2).communicate()
    assert "error: 2 GPUs are wanted (training.gpus), but 1 can be seen: 0" in said


@pytest.mark.parametrize("visible", ["", "-1"])
def test_nothing_happens_without_gpus(jobs, tmp_path, visible):
    assert [sees(jobs.start(visible)) for _ in range(2)] == [visible, visible]
    assert not list(tmp_path.iterdir())


def test_a_job_of_slurm_has_its_gpus_to_itself(jobs, tmp_path):
    """Every job on a node sees its own as number 0."""
    assert [sees(jobs.start("0", SLURM_JOB_ID=number)) for number in ("7", "8")] == ["0", "0"]
    assert sees(jobs.start("0,1", count=2, SLURM_JOB_ID="9")) == "0,1"
    assert not list(tmp_path.iterdir())


def test_jobs_within_an_allocation_share_it_out(jobs):
    assert {sees(jobs.start("0,1", SLURM_JOB_ID="7")) for _ in range(2)} == {"0", "1"}
    assert sees(jobs.start("0,1", SLURM_JOB_ID="8")) == "0"


def test_a_second_claim_in_one_process_keeps_the_first(jobs):
    then = "devices.claim(); print(os.environ['CUDA_VISIBLE_DEVICES'], flush=True)"
    job = jobs.start("3,4", then=then)
    assert [sees(job), sees(job)] == ["3", "3"]


def test_a_killed_jobs_child_keeps_the_gpu_while_it_lives(jobs):
    """As LLaMA-Factory does: it is still on the device."""
    then = (
        "import subprocess; child = subprocess.Popen([sys.executable, '-c', 'input()'],"
        " close_fds=False, stdout=subprocess.DEVNULL); print(child.pid, flush=True); child.wait()"
    )
    job = jobs.start("0", then=then)
    assert sees(job) == "0"
    child = int(sees(job))
    waiting = jobs.start("0")
    job.kill()
    job.wait()
    assert "waiting" in waits(waiting)
    os.kill(child, signal.SIGKILL)
    assert sees(waiting) == "0"


def test_without_the_variable_it_is_what_torch_sees(jobs, tmp_path):
    (tmp_path / "torch.py").write_text("class cuda:\n    device_count = staticmethod(lambda: 2)\n")
    path = f"workflow{os.pathsep}{tmp_path}"
    assert {sees(jobs.start(None, PYTHONPATH=path)) for _ in range(2)} == {"0", "1"}


def test_exactly_the_rules_with_gpus_run_scripts_that_claim_them():
    text = "\n".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    asking = set()
    for block in re.split(r"(?m)^(?=rule )", text):
        if "gpu=" in block:
            asking.add(re.search(r'script\("(\w+)"\)', block).group(1))
    scripts = (ROOT / "workflow/scripts").glob("*.py")
    assert {path.stem for path in scripts if "devices.claim(" in path.read_text()} == asking


def test_cuda_is_not_asked_before_a_script_has_claimed_its_gpu():
    """It would not look at CUDA_VISIBLE_DEVICES again."""
    code = """
import torch
def asked(*_): raise AssertionError("CUDA was asked at import")
torch.cuda.is_available = torch.cuda.device_count = torch.cuda._lazy_init = asked
import greedy, localise_neurons, ranks, sample, train_lora
"""
    path = os.pathsep.join(["workflow", "workflow/scripts"])
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
