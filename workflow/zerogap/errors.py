"""The error for bad user input, and how an error is quoted."""


class InputError(ValueError):
    """Bad configuration, data or files: the message says where, what is wrong and how to fix it."""


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or its type if it has none."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
