"""A real one-node Slurm cluster in a folder: munged, slurmctld and slurmd, on loopback."""

import os
import pwd
import re
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

DAEMONS = ("munged", "slurmctld", "slurmd")
SEARCHED = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
PATIENCE = 120  # seconds; a healthy cluster answers in one or two

# The node claims the resources that the paper's jobs request. Nothing is enforced, so a small
# machine can run toy jobs with the real requests. Its GPUs are ordinary files. A requeued job
# starts again when its credential has expired, after seconds instead of two minutes.
CONFIGURATION = """\
ClusterName=zerogap
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={slurmctld_port}
SlurmdPort={slurmd_port}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=30
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0
KillWait=5
MinJobAge=86400
GresTypes=gpu
NodeName=node NodeHostname={host} NodeAddr=127.0.0.1 CPUs=64 RealMemory=1000000 Gres=gpu:{gpus}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Cluster:
    """A context in which the daemons run; they and their files are removed at its end.

    Args:
        folder: an existing, empty folder; its path must be short, because it holds a socket.
        gpus: number of GPUs that the node claims to have.

    Raises:
        RuntimeError: a daemon did not start; the message contains its log.
    """

    def __init__(self, folder: Path, gpus: int = 3) -> None:
        self.folder = folder
        self.environment = os.environ | {
            "PATH": f"{folder}/bin{os.pathsep}{SEARCHED}",
            "SLURM_CONF": str(folder / "slurm.conf"),
        }
        for name in [name for name in self.environment if name.startswith("SLURM_JOB")]:
            del self.environment[name]
        self._gpus = gpus
        self._running: list[subprocess.Popen] = []

    def __enter__(self) -> Self:
        folder, host = self.folder, socket.gethostname().split(".")[0]
        for name in ("bin", "state", "spool"):
            (folder / name).mkdir()
        srun = folder / "bin/srun"  # Snakemake's plugin removes SLURM_CONF from its environment
        configuration = f"SLURM_CONF=${{SLURM_CONF:-{folder}/slurm.conf}}"
        srun.write_text(
            f'#!/bin/sh\n{configuration} exec {shutil.which("srun", path=SEARCHED)} "$@"\n'
        )
        srun.chmod(0o755)
        for number in range(self._gpus):
            (folder / f"gpu{number}").touch()
        (folder / "slurm.conf").write_text(
            CONFIGURATION.format(
                folder=folder,
                host=host,
                gpus=self._gpus,
                user=pwd.getpwuid(os.getuid()).pw_name,
                **dict(zip(("slurmctld_port", "slurmd_port"), free_ports(2), strict=True)),
            )
        )
        devices = f"{folder}/gpu[0-{self._gpus - 1}]"
        (folder / "gres.conf").write_text(f"AutoDetect=off\nName=gpu File={devices}\n")
        key = folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        try:
            self._start(
                "munged", "--foreground", "--force", f"--key-file={key}",
                f"--socket={folder}/munge.socket", f"--pid-file={folder}/munged.pid",
                f"--seed-file={folder}/munge.seed", f"--log-file={folder}/munge.log",
            )  # fmt: skip
            self._await("munged", (folder / "munge.socket").exists)
            self._start("slurmctld", "-D")
            self._await("slurmctld", lambda: "is UP" in self.run("scontrol", "ping", check=False))
            self._start("slurmd", "-D", "-N", "node")
            self._await("slurmd", lambda: self.run("sinfo", "-h", "-o", "%t").strip() == "idle")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if len(self._running) == len(DAEMONS):
            self.run("scancel", "--partition=all", check=False)
            self._await("the last job", lambda: not self.run("squeue", "-h", check=False).strip())
        for daemon in reversed(self._running):
            daemon.terminate()
            try:
                daemon.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self._running.clear()

    def run(self, *command: str, check: bool = True) -> str:
        """Run a command in the cluster's environment and return its output."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False
        )
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout

    def jobs(self) -> list[dict[str, str]]:
        """Return all submitted jobs in order, with the fields of `scontrol show job`.

        TRES is parsed as well: {"TRES": "cpu=1,gres/gpu=1"} also gives "cpu" and "gres/gpu".
        """
        jobs = []
        for line in self.run("scontrol", "show", "job", "--oneliner").splitlines():
            fields = dict(re.findall(r"(\S+?)=(.*?)(?=\s+\S+=|\s*$)", line))
            if "JobId" in fields:
                tres = dict(
                    part.split("=") for part in fields.get("TRES", "").split(",") if "=" in part
                )
                jobs.append(fields | tres)
        return sorted(jobs, key=lambda job: int(job["JobId"]))

    def _start(self, name: str, *arguments: str) -> None:
        with (self.folder / f"{name}.log").open("w") as log:
            self._running.append(
                subprocess.Popen(  # terminated with this process, even if that is killed
                    [
                        "setpriv",
                        "--pdeathsig",
                        "TERM",
                        shutil.which(name, path=SEARCHED),
                        *arguments,
                    ],
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )

    def _await(self, name: str, ready: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not ready():
            log = self.folder / f"{name}.log"
            if time.monotonic() > end or self._running[-1].poll() is not None:
                tail = log.read_text()[-3000:] if log.exists() else ""
                raise RuntimeError(f"{name} did not become ready: {tail}")
            time.sleep(0.2)


def missing() -> list[str]:
    """Return the programs that a cluster needs and this machine lacks."""
    needed = (*DAEMONS, "sbatch", "srun", "squeue", "scontrol", "scancel", "sinfo", "setpriv")
    return [name for name in needed if shutil.which(name, path=SEARCHED) is None]


def free_ports(count: int) -> list[int]:
    """Return unused loopback ports."""
    sockets = [socket.socket() for _ in range(count)]
    for listener in sockets:
        listener.bind(("127.0.0.1", 0))
    ports = [listener.getsockname()[1] for listener in sockets]
    for listener in sockets:
        listener.close()
    return ports
