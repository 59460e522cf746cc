"""Strategies inside other libraries: lm-evaluation-harness and vLLM."""
