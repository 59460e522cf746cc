"""What a failed run says at its end: the failed jobs, their logs and the last lines of these."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

LAST_LINES = 5


class FailedJob(NamedTuple):
    """A job that failed in its last attempt."""

    rule: str
    wildcards: Mapping[str, str]
    logs: Sequence[str]


def describe(jobs: Iterable[FailedJob]) -> str:
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
