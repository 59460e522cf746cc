"""The command line; only `zerogap evaluate`, `sample` and `rehearse` load torch."""

from zerogap.cli.app import main

__all__ = ["main"]
