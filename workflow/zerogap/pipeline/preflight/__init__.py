"""Checks before a run, for what would otherwise fail hours into it.

Each check takes what it needs and returns results; `checks.run_checks` runs them all and reports
every failure at once. Only what the configuration uses is checked: an offline scale asks no hub.
"""
