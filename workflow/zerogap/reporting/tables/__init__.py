"""The tables of the paper and beyond it, from `metrics` tables and other results of a run.

A row or column without any value is left out; a single missing value is a dash. The best strategy
of a column is bold, as in the paper. Identity is not a mitigation strategy and does not compete.
"""
