"""How far a run is: one line when long jobs start, with those that run and the time left."""

import logging
import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Any

MAX_LISTED = 4


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
