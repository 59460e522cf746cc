"""The one error that a user's input can cause."""


class InputError(ValueError):
    """Bad configuration, data or files: the message names the place and the mend."""
