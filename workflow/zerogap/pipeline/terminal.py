"""Snakemake in the terminal: its command, misspelt targets, counts and failures."""

import difflib
import logging
import os
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from zerogap.errors import InputError

MIN_GPU_MINUTES = 10  # a model may not even be loaded in less
LAST_LINES = 5  # of the log of a failed job


def snakemake_command(
    snakefile: str | Path, configfiles: Sequence[str | Path], config_args: Sequence[str]
) -> str:
    """The command that calls Snakemake again with the configuration of this run's command line.

    This run holds the lock of the directory; the call within it only reads.
    """
    command = ["python", "-m", "snakemake", "--nolock", "--snakefile", os.path.relpath(snakefile)]
    if configfiles:
        command += ["--configfile", *map(os.path.relpath, configfiles)]
    if config_args:
        command += ["--config", *config_args]
    return shlex.join(command)


def check_targets(requested: Iterable[str], targets: Collection[str]) -> None:
    """Check that everything requested is a target or may be a file; those are all in folders.

    Raises:
        InputError: something is neither; the message has the nearest names.
    """
    for name in requested:
        if "/" not in name and name not in targets:
            nearest = difflib.get_close_matches(name, targets)
            hint = f"did you mean {', '.join(nearest)}? " if nearest else ""
            raise InputError(f"'{name}' is not a target; {hint}docs/workflow.md#targets lists all")


def resource_warnings(
    changed: Mapping[str, Mapping[str, Any]], uses_gpu: Mapping[str, bool]
) -> Iterator[str]:
    """What is probably a mistake in `set-resources`: rule → resource → an object of Snakemake.

    `uses_gpu` says of all rules whether their jobs use a GPU.
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
    """Drops what Snakemake adds to the job counts in a dry run: the counts again, and reasons."""

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


def describe_failures(failed: Iterable[Any], start: float) -> str:
    """The failed jobs with the ends of their logs, in the order of the rules' names.

    The jobs of a group (``--groups``) fail as one. A log from before the start of the run (seconds
    since the epoch) is that of another attempt.
    """
    jobs = [job for one in failed for job in (one.jobs if one.is_group() else [one])]
    jobs.sort(key=lambda job: (job.rule.name, sorted(job.wildcards_dict.items())))
    blocks = [f"{len(jobs)} job{'s' * (len(jobs) != 1)} failed:"]
    for job in jobs:
        wildcards = (f"{name}={value}" for name, value in job.wildcards_dict.items())
        blocks.append(" ".join([job.rule.name, *wildcards]))
        for log in job.log:
            blocks += [f"  log: {log}", *(f"  | {line}" for line in _last_lines(Path(log), start))]
    return "\n".join(blocks)


def _last_lines(log: Path, start: float) -> list[str]:
    if not log.is_file() or log.stat().st_mtime < start:
        return ["(the job was stopped before it wrote its log)"]
    lines = log.read_text(encoding="utf-8", errors="replace").rstrip().splitlines()
    return lines[-LAST_LINES:] or ["(the log is empty)"]
