"""The error for bad user input."""


class InputError(ValueError):
    """Bad configuration, data or files: the message says where, what is wrong and how to fix it."""
