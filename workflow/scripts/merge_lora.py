"""Merge a LoRA adapter into its base model."""

from script_helpers import run
from zerogap.training.merging import merge_adapter

if __name__ == "__main__":
    run(merge_adapter)
