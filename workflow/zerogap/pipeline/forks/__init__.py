"""Jobs forked from one process, the fork server, which has imported what they need.

A job of a small run takes less time than its imports. Rules, scripts and LLaMA-Factory know nothing
of this. The folder of this module is on the path of the jobs, so each Python runs `sitecustomize`
when it starts: it hands its script over to the server and ends as the forked process ends. Without
a server, scripts run by themselves. A forked process is not a child of its shell: the memory and
load in Snakemake's benchmark files are not those of the job.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ADDRESS = "ZEROGAP_FORK_SERVER"  # the variable with the path of the server's socket


def start(modules: Sequence[str], variables: Mapping[str, str], log: Path) -> None:
    """Start a server, which ends with this process.

    Args:
        modules: what it imports before it forks.
        variables: those of the jobs, `ADDRESS` among them.
        log: its output.
    """
    threads = {"OMP_NUM_THREADS": "1"}  # none can be forked
    hash_seed = {"PYTHONHASHSEED": "0"}  # as LLaMA-Factory has it
    lifeline, _ = os.pipe()  # its other end is open as long as this process
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", __name__, *modules],
            env=os.environ | variables | threads | hash_seed,
            stdin=lifeline,
            stdout=output,
            stderr=output,
        )
    os.close(lifeline)
