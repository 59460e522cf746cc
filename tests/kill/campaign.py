"""Kill a run of the whole workflow at random moments and compare its files with those of another.

    make kill-test [KILLS=50]

Two runs of tests/end_to_end/micro.yaml are made. One is left alone. Of the other one, Snakemake and
all its jobs are killed with SIGKILL again and again, and the documented commands continue it. At
the end both must have the same files with the same bytes, apart from logs and timings.
"""

import argparse
import hashlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from helpers.dry_runs import SNAKEMAKE, environment, link_checkout

SCALE = (
    *("--profile", "profiles/quick"),
    *("--configfile", "profiles/quick/quick.yaml", "tests/end_to_end/micro.yaml"),
)
SCRIPT = re.compile(r"(?:scripts/|\.snakemake/scripts/tmp\w+\.)(\w+)\.py")
NOT_COMPARED = ("logs", "timings")  # folders of results/micro
LONGEST_WAIT = 25.0  # seconds until a kill; a job of this size takes about as long


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        alone, killed = (link_checkout(Path(name, kind)) for kind in ("alone", "killed"))
        finish(alone)
        victims = disturb(killed, arguments.kills, random.Random(arguments.seed))
        finish(killed)
        differing = differences(digests(alone), digests(killed))
    print(f"{arguments.kills} kills; jobs that were running:")
    for script, number in victims.most_common():
        print(f"  {script:<24} {number}")
    print(f"{len(differing)} files differ" + "".join(f"\n  {path}" for path in differing))
    return int(bool(differing))


def disturb(folder: Path, num_kills: int, draw: random.Random) -> Counter[str]:
    """Start the run again and again and kill it; how often each script was running then.

    A run that ends before its kill is an error: the scale is too small for so many kills.
    """
    victims: Counter[str] = Counter()
    num_done = 0
    while num_done < num_kills:
        unlock(folder)
        process = start(folder)
        try:
            process.wait(timeout=draw.uniform(2, LONGEST_WAIT))
        except subprocess.TimeoutExpired:
            victims.update(running_scripts(process.pid))
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            num_done += 1
            print(f"kill {num_done} of {num_kills}", flush=True)
        else:
            raise SystemExit(
                f"the run ended after {num_done} kills; lower --kills or use a larger scale"
            )
    return victims


def start(folder: Path) -> subprocess.Popen[bytes]:
    log = (folder / "snakemake.log").open("ab")
    return subprocess.Popen(
        [SNAKEMAKE, *SCALE],
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
        [SNAKEMAKE, *SCALE, "--unlock"],
        cwd=folder,
        env=environment(folder),
        check=True,
        capture_output=True,
    )


def running_scripts(session: int) -> set[str]:
    """The scripts of the session's processes."""
    scripts = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().decode(errors="replace")
            if os.getsid(int(path.parent.name)) == session and (found := SCRIPT.search(command)):
                scripts.add(found[1])
        except (OSError, ProcessLookupError):
            continue  # it has ended
    return scripts or {"no job"}


def digests(folder: Path) -> dict[str, str]:
    """A digest of each file of the run."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for top in ("results/micro", "reports/micro")
        for path in sorted((folder / top).rglob("*"))
        if path.is_file() and path.relative_to(folder).parts[2] not in NOT_COMPARED
    }


def differences(first: dict[str, str], second: dict[str, str]) -> list[str]:
    return sorted(
        path for path in first.keys() | second.keys() if first.get(path) != second.get(path)
    )


if __name__ == "__main__":
    sys.exit(main())
