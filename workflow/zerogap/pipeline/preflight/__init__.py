"""Checks before a run, for what would otherwise fail hours into it.

Each check takes what it needs and returns results; :func:`run_checks` runs them all and reports
every failure at once. Only what the configuration uses is checked: an offline scale asks no hub.
"""

from zerogap.pipeline.preflight.checks import all_checks, run_checks
from zerogap.pipeline.preflight.result import FAILED, OK, SKIPPED, CheckResult

__all__ = ["FAILED", "OK", "SKIPPED", "CheckResult", "all_checks", "run_checks"]
