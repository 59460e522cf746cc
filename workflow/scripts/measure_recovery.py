"""Sample responses that take the runner-up at one random step of the greedy trajectory."""

from script_helpers import run
from zerogap.sampling import diagnostics

if __name__ == "__main__":
    run(diagnostics.measure_recovery, on_gpu=True)
