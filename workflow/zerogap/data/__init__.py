"""Benchmarks as data: questions, prompts, paraphrases, instructions and answer extraction."""
