"""The command line: `zerogap score` and `zerogap plan`; neither loads torch."""

from zerogap.cli.app import main

__all__ = ["main"]
