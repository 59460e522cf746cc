"""Merge the shards of a neuron localisation and select the shortcut neurons."""

from script_helpers import run
from zerogap.sampling import localisation

if __name__ == "__main__":
    run(localisation.merge_neurons)
