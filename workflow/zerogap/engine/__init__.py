"""Decoding many samples per question. Read docs/engine.md first."""
