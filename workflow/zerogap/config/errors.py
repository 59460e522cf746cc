"""The error for a mistake in the configuration."""

from zerogap.errors import InputError


class ConfigError(InputError):
    """A mistake in the configuration: where it is, and what is wrong.

    Attributes:
        key: the key, e.g. `sampling.num_samples`.
        problem: what is wrong with it and how to fix it; it continues the sentence that the key
            begins, or starts with a colon.
    """

    def __init__(self, key: str, problem: str, source: str = "config") -> None:
        """Write the message.

        Args:
            key: the key.
            problem: what is wrong with it.
            source: the file with the mistake, or "config" where files are joined.
        """
        separator = "" if problem.startswith(":") else " "
        super().__init__(f"{source}: {key}{separator}{problem}")
        self.key = key
        self.problem = problem
