"""Stands in where torchaudio is not installed: LLaMA-Factory imports it even for text alone."""
