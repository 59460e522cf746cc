"""Identity: the contaminated model without intervention (paper §5.1)."""

from zerogap.decoding.strategy import Context, Strategy


def identity(context: Context) -> Strategy:
    """No change to anything."""
    return Strategy()
