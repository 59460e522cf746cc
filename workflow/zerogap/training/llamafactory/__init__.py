"""LoRA training and merging with LLaMA-Factory: its input files, its commands, its checkpoints.

The examples (JSON) and the settings (YAML) are written to files first and kept with the result.
"""
