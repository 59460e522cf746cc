"""Extraction rules for models that answer no question."""


def parity(text: str) -> str:
    """Return "0" or "1", which a random model gets right about every other time."""
    return str(sum(text.encode()) % 2)
