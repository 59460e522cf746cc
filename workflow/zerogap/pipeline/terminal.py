"""What a run says in the terminal: misspelt targets, counts, progress and failures."""

import difflib
import logging
import math
import os
import shlex
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from zerogap.errors import InputError

LAST_LINES = 5  # of the log of a failed job
MAX_LISTED = 4  # running jobs in a line on the progress
MIN_GPU_MINUTES = 10  # a model may not even be loaded in less


def snakemake_command(
    snakefile: str | Path, configfiles: Sequence[str | Path], config_args: Sequence[str]
) -> str:
    """The command that calls Snakemake again with the configuration of this run.

    This run holds the lock of the directory; the call within it only reads.

    Args:
        snakefile: The main Snakefile.
        configfiles: Those given on the command line.
        config_args: ``KEY=VALUE`` pairs given on the command line.
    """
    command = ["python", "-m", "snakemake", "--nolock", "--snakefile", os.path.relpath(snakefile)]
    if configfiles:
        command += ["--configfile", *map(os.path.relpath, configfiles)]
    if config_args:
        command += ["--config", *config_args]
    return shlex.join(command)


def check_targets(requested: Iterable[str], targets: Collection[str]) -> None:
    """Check that every requested target exists, or may be a file.

    Args:
        requested: names of targets, and files; all files of a run are in folders.
        targets: the names of all targets.

    Raises:
        InputError: one of them is neither; the message has the nearest names.
    """
    for name in requested:
        if "/" not in name and name not in targets:
            nearest = difflib.get_close_matches(name, targets)
            hint = f"did you mean {', '.join(nearest)}? " if nearest else ""
            raise InputError(f"'{name}' is not a target; {hint}docs/workflow.md#targets lists all")


def resource_warnings(
    changed: Mapping[str, Mapping[str, Any]], uses_gpu: Mapping[str, bool]
) -> Iterator[str]:
    """What is probably a mistake in `set-resources`.

    Args:
        changed: rule → resource → what it is set to, as an object of Snakemake.
        uses_gpu: whether a rule's jobs use a GPU, for all rules.
    """
    for rule, resources in changed.items():
        if rule not in uses_gpu:
            nearest = difflib.get_close_matches(rule, uses_gpu)
            hint = f"; did you mean {', '.join(nearest)}?" if nearest else ""
            yield f"set-resources: there is no rule '{rule}'{hint}"
        elif uses_gpu[rule] and "runtime" in resources:
            runtime = resources["runtime"]
            names = ("wildcards", "input", "attempt", "threads", "rulename", "async_run")
            try:
                minutes = runtime.evaluate(**dict.fromkeys(names, 1)).value
            except Exception:  # noqa: S112 (an expression that needs a job's own values)
                continue
            if minutes < MIN_GPU_MINUTES:
                yield (
                    f"set-resources: the runtime {runtime.raw} of {rule} is {minutes} min, too "
                    "short for a job on a GPU; write 2d for two days, 12h or minutes"
                )


class CountsOnce(logging.Filter):
    """Drops what Snakemake adds to the job counts, for a dry run that does not list the jobs.

    It repeats the counts after the list, and then names all rules again, by the reasons of their
    jobs.
    """

    def __init__(self) -> None:
        """Let the first counts through."""
        super().__init__()
        self._counted = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a message of Snakemake is printed."""
        counts = vars(record).get("event") == "run_info"
        repeats = counts and self._counted
        self._counted |= counts
        return not repeats and not str(record.msg).startswith("Reasons:")


class FailedJob(NamedTuple):
    """A job that failed in its last attempt."""

    rule: str
    wildcards: Mapping[str, str]
    logs: Sequence[str]


def describe_failures(jobs: Iterable[FailedJob]) -> str:
    """The failed jobs with the ends of their logs, in the order of the rules' names."""
    jobs = sorted(jobs, key=lambda job: (job.rule, sorted(job.wildcards.items())))
    blocks = [f"{len(jobs)} job{'s' * (len(jobs) != 1)} failed:"]
    for job in jobs:
        blocks.append(" ".join([job.rule, *(f"{k}={v}" for k, v in job.wildcards.items())]))
        for log in job.logs:
            blocks += [f"  log: {log}", *(f"  | {line}" for line in _last_lines(Path(log)))]
    return "\n".join(blocks)


def _last_lines(log: Path) -> list[str]:
    if not log.is_file():
        return ["(the job was stopped before it wrote its log)"]
    lines = log.read_text(encoding="utf-8", errors="replace").rstrip().splitlines()
    return lines[-LAST_LINES:] or ["(the log is empty)"]


class Progress(logging.Handler):
    """Follows the long jobs of a run through the events that Snakemake logs.

    The time left is the work left, at the mean time of each rule's finished jobs, divided by the
    mean number of jobs that ran at once. While a rule has no finished job, it is a lower bound.
    """

    def __init__(
        self,
        rules: Collection[str],
        log: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Follow the jobs of some rules and log a line whenever some of them have started."""
        super().__init__()
        self._rules, self._log, self._clock = rules, log, clock
        self._counts: dict[str, int] = {}  # rule → jobs of the run
        self._seconds: dict[str, list[float]] = defaultdict(list)  # rule → of its finished jobs
        self._running: dict[int, tuple[str, str, float]] = {}  # job → rule, place, start
        self._announced: set[int] = set()  # jobs that start together and are not logged yet
        self._has_news = False
        self._first_start = math.inf

    def emit(self, record: logging.LogRecord) -> None:
        """Take note of an event; other records are ignored."""
        event: dict[str, Any] = vars(record)
        match event.get("event"):
            case "run_info":
                self._counts = {rule: event["stats"].get(rule, 0) for rule in self._rules}
            case "job_started":
                self._announced = set(event["jobs"])
            case "job_info" if event["jobid"] in self._announced:  # none in a dry run
                self._start(event["jobid"], event["rule_name"], event["wildcards"])
            case "job_finished" if event["job_id"] in self._running:
                rule, _, start = self._running.pop(event["job_id"])
                self._seconds[rule].append(self._clock() - start)
            case "job_error":
                self._running.pop(event["jobid"], None)

    def _start(self, job: int, rule: str, wildcards: dict[str, str]) -> None:
        if rule in self._rules:
            self._running[job] = rule, "/".join(wildcards.values()), self._clock()
            self._first_start = min(self._first_start, self._clock())
            self._has_news = True
        self._announced.remove(job)
        if self._has_news and not self._announced:
            self._has_news = False
            self._log(self._line())

    def _line(self) -> str:
        done, total = sum(map(len, self._seconds.values())), sum(self._counts.values())
        names = [f"{rule} {place}".rstrip() for rule, place, _ in self._running.values()]
        more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
        listed = ", ".join(names[:MAX_LISTED])
        return f"{done} of {total} long jobs done{self._time_left()}; running: {listed}{more}"

    def _time_left(self) -> str:
        spent = [(rule, self._clock() - start) for rule, _, start in self._running.values()]
        work = 0.0
        for rule, seconds in self._seconds.items():
            mean = sum(seconds) / len(seconds)
            work += mean * (self._counts[rule] - len(seconds))
            work -= sum(min(mean, elapsed) for running, elapsed in spent if running == rule)
        if not work:
            return ""
        busy = sum(map(sum, self._seconds.values())) + sum(elapsed for _, elapsed in spent)
        minutes = math.ceil(work * (self._clock() - self._first_start) / busy / 60)
        unknown = {rule for rule, count in self._counts.items() if count} - self._seconds.keys()
        left = f"{minutes} min" if minutes < 120 else f"{minutes / 60:.0f} h"
        return f", {'at least' if unknown else 'about'} {left} left"
