"""Identity: the contaminated model without mitigation (paper §5.1)."""

from dataclasses import dataclass

from zerogap.strategies.base import Context, Intervention


@dataclass(frozen=True)
class Identity:
    """The contaminated model without mitigation."""

    def prepare(self, context: Context) -> Intervention:
        """Return an empty intervention."""
        return Intervention()
