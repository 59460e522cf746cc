"""Sample responses to every question from one model under one strategy."""

from script_helpers import run
from zerogap.sampling import jobs

if __name__ == "__main__":
    run(jobs.sample_cell, on_gpu=True)
