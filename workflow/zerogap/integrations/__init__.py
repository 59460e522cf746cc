"""Strategies inside other libraries: lm-evaluation-harness, Inspect and vLLM."""
