"""Merge the shards of a cell, in the order of the questions."""

from script_helpers import run
from zerogap.sampling import tables

if __name__ == "__main__":
    run(tables.merge_shards)
