"""LoRA training with LLaMA-Factory: its input files, its command, its checkpoints.

The examples (JSON) and the settings (YAML) are written to files first and kept with the result.
"""
