"""Decode the greedy trajectory of every question, with the entropy of each step."""

from script_helpers import run
from zerogap.sampling import jobs

if __name__ == "__main__":
    run(jobs.decode_greedy, on_gpu=True)
