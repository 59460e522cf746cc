"""The dress rehearsal: every stage of a run with each configured model, shrunk, in minutes."""

from zerogap.pipeline.preflight.result import FAILED, OK, SKIPPED
from zerogap.pipeline.rehearsal.runner import StageResult, rehearse

__all__ = ["FAILED", "OK", "SKIPPED", "StageResult", "rehearse"]
