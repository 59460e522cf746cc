"""The command line: `zerogap score`, `plan` and `rehearse`; only the last loads torch."""

from zerogap.cli.app import main

__all__ = ["main"]
