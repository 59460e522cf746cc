"""Localise the shortcut neurons of a contaminated model: comparative and causal scores."""

from script_helpers import run
from zerogap.sampling import localisation

if __name__ == "__main__":
    run(localisation.localise_neurons, on_gpu=True)
