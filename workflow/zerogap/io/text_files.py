"""Text files from outside: UTF-8 with or without a byte order mark, and lines of JSON."""

import json
from pathlib import Path
from typing import Any

from zerogap.errors import InputError


def read_text(path: Path) -> str:
    """The text of a file in UTF-8.

    Raises:
        InputError: it cannot be read, or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        reason = error.strerror
        raise InputError(f"{path}: does not exist or is not readable ({reason})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text ({error.reason}); convert it") from error


def parse_json(line: str) -> Any:
    """The value of a line of JSON.

    Raises:
        InputError: it is not JSON, is nested too deep, has a number with thousands of digits, or
            has a text that cannot be written as UTF-8.
    """
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"invalid JSON ({error.msg}); write one object per line") from error
    except RecursionError as error:
        raise InputError("the JSON is nested too deep; write one flat object per line") from error
    except ValueError as error:  # Python's limit on the digits of an integer
        raise InputError("a number has thousands of digits; write it as a text") from error
    if "\\u" in line:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise InputError("a text has half a surrogate pair (\\ud800 …); remove it") from error
    return value
