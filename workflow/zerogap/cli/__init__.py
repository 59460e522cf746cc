"""The command line; of its commands, only those that decode load torch."""

from zerogap.cli.app import main

__all__ = ["main"]
