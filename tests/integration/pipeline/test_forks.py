"""Jobs start quickly: they load no library without need, and a fork server runs their scripts."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers.scripts import python
from zerogap.pipeline import forks

FOLDER = str(Path(forks.__file__).parent)
REPORT = """
import os, sys
import neighbour
print(__name__, sys.argv, os.getcwd(), os.environ["VALUE"], sys.path[0], sys.stdin.read())
print(neighbour.VALUE, file=sys.stderr)
"""
RUN = """
import os, signal, subprocess, sys, time
from pathlib import Path
from zerogap.pipeline import forks
address = os.environ[forks.ADDRESS]
signal.signal(signal.SIGINT, lambda *_: None)
forks.start([], {}, Path(address + ".log"))
for _ in range(1200):
    if Path(address).is_socket():
        break
    time.sleep(0.1)
time.sleep(0.2)  # it listens
sys.exit(subprocess.run([sys.executable, "job.py"]).returncode)
"""
INTERRUPTED = """
import sys, time
try:
    print("runs", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    time.sleep(0.5)
    print("cleaned", flush=True)
    sys.exit(3)
"""
SCRIPTS = {
    "a report": REPORT,
    "an exit code": "import sys; sys.exit(7)",
    "a message": "import sys; sys.exit('error: no')",
    "a signal": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "a child": "import subprocess; print(subprocess.run(['sh', '-c', 'exit 4']).returncode)",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of a server that has imported `wave`, and whose run ends with the tests."""
    address = str(tmp_path_factory.mktemp("server") / "socket")
    run = "import sys; from zerogap.pipeline import forks; from pathlib import Path;"
    run += f"forks.start(['wave'], {{{forks.ADDRESS!r}: {address!r}}}, Path({address + '.log'!r}));"
    process = subprocess.Popen(
        [sys.executable, "-c", run + "print('started', flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
    )
    wait_until(lambda: os.path.exists(address))
    yield address
    process.stdin.close()
    wait_until(lambda: not os.path.exists(address))


def wait_until(condition):
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.1)
    raise TimeoutError


def start(folder, code, address, **variables):
    (folder / "neighbour.py").write_text("VALUE = 'next to the script'")
    (folder / "job.py").write_text(code)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "VALUE": "é", "PYTHONPATH": FOLDER}
    return subprocess.Popen(
        [sys.executable, "job.py", "--value", '{"a": 1}'],
        **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE),
        cwd=folder,
        env=environment | {forks.ADDRESS: address} | variables,
    )


def result(process, text=b""):
    return *process.communicate(text), process.returncode


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_prints_and_ends_as_it_does_by_itself(server, tmp_path, name):
    alone = result(start(tmp_path, SCRIPTS[name], "nowhere"), b"input")
    assert result(start(tmp_path, SCRIPTS[name], server), b"input") == alone


def test_a_script_finds_the_modules_imported(server, tmp_path):
    code = "import sys; print('wave' in sys.modules)"
    outputs = [
        result(start(tmp_path, code, address, OMP_NUM_THREADS=threads))[0]
        for address, threads in (("nowhere", "1"), (server, "2"), (server, "1"))
    ]
    assert outputs == [b"False\n", b"False\n", b"True\n"]


def test_an_error_names_the_line_of_the_script(server, tmp_path):
    _, error, code = result(start(tmp_path, "\nraise ValueError('here')", server))
    assert code == 1
    assert b'job.py", line 2, in <module>' in error
    assert error.endswith(b"ValueError: here\n")


def test_scripts_run_at_the_same_time(server, tmp_path):
    code = "print(flush=True); input()"
    processes = [start(tmp_path, code, server) for _ in range(2)]
    for process in processes:
        assert process.stdout.readline() == b"\n"
    assert [result(process, b"\n")[2] for process in processes] == [0, 0]


def test_a_killed_job_leaves_no_process(server, tmp_path):
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    process = start(tmp_path, code, server)
    forked = int(process.stdout.readline())
    assert forked != process.pid
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until(lambda: not os.path.exists(f"/proc/{forked}"))


@pytest.fixture
def run_of(tmp_path):
    """Start a run with a server and one job, in a process group of its own."""

    def start_run(code):
        (tmp_path / "job.py").write_text(code)
        path = os.pathsep.join([FOLDER, *filter(None, [os.environ.get("PYTHONPATH")])])
        variables = {"OMP_NUM_THREADS": "1", forks.ADDRESS: str(tmp_path / "socket")}
        return subprocess.Popen(
            [sys.executable, "-c", RUN],
            stdout=subprocess.PIPE,
            cwd=tmp_path,
            env=os.environ | variables | {"PYTHONPATH": path},
            start_new_session=True,
        )

    return start_run


def test_a_job_interrupted_with_its_run_ends_by_itself(run_of, tmp_path):
    run = run_of(INTERRUPTED)
    assert run.stdout.readline() == b"runs\n"
    assert (tmp_path / "socket.log").read_text() == "job.py\n"
    os.killpg(run.pid, signal.SIGINT)
    assert result(run)[::2] == (b"cleaned\n", 3)


def test_a_server_takes_the_address_of_one_that_was_killed(run_of, tmp_path):
    (tmp_path / "socket").touch()
    assert result(run_of("print('runs')"))[::2] == (b"runs\n", 0)
    assert (tmp_path / "socket.log").read_text() == "job.py\n"


HEAVY = {"torch", "transformers", "matplotlib", "lm_eval"}
PLAN = "from zerogap.cli import main; main(['plan'])"
CATALOGUE = "import zerogap.pipeline.report.tables, zerogap.pipeline.report.figures"
PREFLIGHT = (
    "from zerogap import config, pipeline; from zerogap.pipeline import preflight; "
    "preflight.run_checks(config.load(['config.yaml', 'profiles/quick/quick.yaml']))"
)
DECODE = "import script_helpers, zerogap.sampling.jobs, zerogap.engine.loading"


def loaded_modules(code):
    code = f"import sys; {code}; print('modules:', *(n for n, m in sys.modules.items() if m))"
    return set(python("-c", code).stdout.split("modules:")[1].split())


@pytest.mark.parametrize("code", [PLAN, PREFLIGHT, CATALOGUE], ids=["plan", "checks", "catalogue"])
def test_what_comes_before_the_jobs_loads_no_deep_learning_library(code):
    assert not loaded_modules(code) & HEAVY


def test_a_job_that_decodes_does_not_load_scikit_learn():
    modules = loaded_modules(DECODE)
    assert "transformers.generation.candidate_generator" in modules  # would load it
    assert "sklearn" not in modules
