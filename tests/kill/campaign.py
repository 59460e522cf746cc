"""Kill a run of the whole workflow at random moments and compare its files with those of another.

    make kill-test [KILLS=50]

One run of tests/end_to_end/micro.yaml is left alone. Of another one, Snakemake and all its jobs are
killed with SIGKILL again and again, and the documented commands continue it. If it ends before it
was killed often enough, a further run is. At the end all runs must have the same files with the
same bytes, apart from what holds timings and the state of the machine.
"""

import argparse
import hashlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from helpers.dry_runs import MICRO, SNAKEMAKE, environment, link_checkout

JOB = re.compile(  # a script and the last file that it makes
    r"(?:scripts/|\.snakemake/scripts/tmp\w+\.)(\w+)\.py(?:.* (results/micro/(?!logs/)\S+))?"
)
MEASURED = re.compile(
    r"results/micro/(logs|timings)/|preflight\.txt|/tables/cost|/checks/provenance"
    r"|adapter/(all_results|train_results|trainer_state)\.json|adapter/trainer_log\.jsonl"
)
LONGEST_WAIT = 16.0  # seconds until a kill; Snakemake starts its first job after about six
NO_JOB = "no job"
MAX_KILLS_PER_JOB = 2  # then it is left to end, so that the kills reach every stage of the run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    victims: Counter[str] = Counter()
    num_kills = num_runs = 0
    differing: set[str] = set()
    with tempfile.TemporaryDirectory() as name:
        alone = link_checkout(Path(name, "alone"))
        finish(alone)
        while num_kills < arguments.kills:
            num_runs += 1
            killed = link_checkout(Path(name, f"killed{num_runs}"))
            for jobs in disturb(killed, arguments.kills - num_kills, draw):
                num_kills += 1
                victims.update({job.split(" results/")[0] for job in jobs})
                print(f"kill {num_kills} of {arguments.kills}: {', '.join(jobs)}", flush=True)
            finish(killed)
            differing |= differences(digests(alone), digests(killed))
            shutil.rmtree(killed)
    print(f"{num_kills} kills in {num_runs} runs; jobs that were running:")
    for script, number in victims.most_common():
        print(f"  {script:<24} {number}")
    print(f"{len(differing)} files differ" + "".join(f"\n  {path}" for path in sorted(differing)))
    return int(bool(differing))


def disturb(folder: Path, num_kills: int, draw: random.Random) -> Iterator[list[str]]:
    """Start the run again and again and kill it, until it ends; the jobs at each kill."""
    kills: Counter[str] = Counter()
    for _ in range(num_kills):
        unlock(folder)
        process = start(folder)
        time.sleep(draw.uniform(2, LONGEST_WAIT))
        jobs = running_jobs(process.pid)
        while any(kills[job] >= MAX_KILLS_PER_JOB for job in jobs) and process.poll() is None:
            time.sleep(0.2)
            jobs = running_jobs(process.pid)
        if process.poll() is not None:
            return
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        kills.update(jobs)
        yield jobs


def start(folder: Path) -> subprocess.Popen[bytes]:
    log = (folder / "snakemake.log").open("ab")
    return subprocess.Popen(
        [SNAKEMAKE, *MICRO],
        cwd=folder,
        env=environment(folder),
        stdout=log,
        stderr=log,
        start_new_session=True,
    )


def finish(folder: Path) -> None:
    """Continue the run to its end."""
    unlock(folder)
    if start(folder).wait():
        raise SystemExit(f"the run failed:\n{(folder / 'snakemake.log').read_text()[-5000:]}")


def unlock(folder: Path) -> None:
    subprocess.run(
        [SNAKEMAKE, *MICRO, "--unlock"],
        cwd=folder,
        env=environment(folder),
        check=True,
        capture_output=True,
    )


def running_jobs(session: int) -> list[str]:
    """The jobs of the session's processes: script, and parameter file if it has one."""
    jobs = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().decode(errors="replace").replace("\0", " ")
            if os.getsid(int(path.parent.name)) == session and (found := JOB.search(command)):
                jobs.add(" ".join(filter(None, found.groups())))
        except (OSError, ProcessLookupError):
            continue  # it has ended
    return sorted(jobs) or [NO_JOB]


def digests(folder: Path) -> dict[str, str]:
    """A digest of each file of the run that is not measured on the machine."""
    paths = [
        path.relative_to(folder)
        for top in ("results/micro", "reports/micro")
        for path in (folder / top).rglob("*")
        if path.is_file()
    ]
    return {
        str(path): hashlib.sha256((folder / path).read_bytes()).hexdigest()
        for path in paths
        if not MEASURED.search(str(path))
    }


def differences(first: dict[str, str], second: dict[str, str]) -> set[str]:
    return {path for path in first.keys() | second.keys() if first.get(path) != second.get(path)}


if __name__ == "__main__":
    sys.exit(main())
