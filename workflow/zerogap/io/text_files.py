"""Text files: UTF-8, from outside perhaps with a byte order mark, and lines of JSON."""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from zerogap.errors import InputError
from zerogap.io import atomic

Parsed = TypeVar("Parsed")
# Control and format characters, halves of surrogate pairs, line and paragraph separators.
_NOT_SHOWN = ("Cc", "Cf", "Cs", "Zl", "Zp")


def printable(text: str, keep: str = "\n") -> str:
    """The text with escapes in place of what a terminal obeys or does not show, except `keep`."""
    if text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode()
        if unicodedata.category(character) in _NOT_SHOWN and character not in keep
        else character
        for character in text
    )


def read_text(path: Path) -> str:
    """The text of a file in UTF-8.

    Raises:
        InputError: it cannot be read, or is not UTF-8.
    """
    try:
        return decode(path, path.read_bytes())
    except OSError as error:
        reason = error.strerror
        raise InputError(f"{path}: does not exist or is not readable ({reason})") from error


def decode(path: Path, content: bytes) -> str:
    """The text of a file's content in UTF-8, with line feeds at the ends of lines.

    Raises:
        InputError: it is not UTF-8.
    """
    try:
        text = content.decode("utf-8-sig")
        return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text ({error.reason}); convert it") from error


def json_lines(
    path: Path, text: str, parse: Callable[[Any], Parsed]
) -> Iterator[tuple[int, Parsed]]:
    """What every line of JSON says, by the number of the line; blank lines are skipped.

    Args:
        path: the file, for errors.
        text: its text.
        parse: the value of a line → what it says; raises InputError if it is not valid.

    Raises:
        InputError: a line is not valid; names the file and the line.
    """
    # Not splitlines: JSON strings may contain the other line separators of Unicode.
    for number, line in enumerate(re.finditer("^.*$", text, re.MULTILINE), start=1):
        if line[0].strip():
            try:
                parsed = parse(parse_json(line[0]))
            except InputError as error:
                raise InputError(f"{path}, line {number}: {error}") from error
            yield number, parsed


def write_json_lines(path: str | Path, entries: Iterable[Mapping[str, Any]]) -> None:
    """Write one object per line, atomically."""
    lines = (json.dumps(dict(entry), ensure_ascii=False) + "\n" for entry in entries)
    atomic.write_text(path, "".join(lines))


def parse_json(line: str) -> Any:
    """The value of a line of JSON.

    Raises:
        InputError: it is not JSON, is nested too deep, has a key twice or a number with thousands
            of digits, or has a text that cannot be written as UTF-8.
    """
    try:
        value = json.loads(line, object_pairs_hook=_object)
    except InputError:
        raise
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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"the key {twice!r} occurs twice in an object; remove one of them")
    return values
