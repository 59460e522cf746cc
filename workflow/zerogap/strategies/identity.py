"""Identity: the contaminated model without intervention (paper §5.1)."""

from dataclasses import dataclass

from zerogap.strategies.base import Context, Intervention


@dataclass(frozen=True)
class Identity:
    """No change to anything."""

    def prepare(self, context: Context) -> Intervention:
        """Nothing."""
        return Intervention()
