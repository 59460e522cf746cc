"""Check the text of the project against the words and phrases listed in tools/prose.txt.

Usage: python tools/check_prose.py [FILE ...]     (without files: everything git tracks)

Comments, docstrings, strings and prose are all checked. A line that has to contain a listed word,
such as a quotation, is exempt when it carries the comment `prose: ok`.
"""

import re
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tools" / "prose.txt"

CHECKED = (
    "*.md", "*.rst", "*.py", "*.smk", "*.yaml", "*.yml", "*.toml", "*.cff", "*.def",
    "*Dockerfile", "Makefile", "Snakefile",
)  # fmt: skip
# Committed outputs of a run and the checker's test.
EXCLUDED = (
    "docs/smollm2-gsm8k/*",
    "tests/unit/project/test_check_prose.py",
)
ESCAPE = "prose: ok"

# What may surround the words of a line: comment signs, quotation marks of a string, list signs.
_LINE_START = re.compile(r"""^[\s#>*]*(?:[frbFRB]{0,2}["']+)?""")
_LINE_END = re.compile(r"""["'\\]*\s*$""")


class Rule(NamedTuple):
    """A pattern that must not occur and what to write instead."""

    pattern: re.Pattern[str]
    suggestion: str


class Violation(NamedTuple):
    """An occurrence of a listed phrase."""

    line: int
    phrase: str
    suggestion: str


def read_rules(table: str) -> list[Rule]:
    """Parse lines of the form `REGEX -> SUGGESTION`; blank lines and lines with `#` are skipped."""
    rules = []
    for line in table.splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, suggestion = line.rsplit(" -> ", 1)
            compiled = re.compile(rf"(?<![\w.-])(?:{pattern.strip()})(?![\w-])", re.IGNORECASE)
            rules.append(Rule(compiled, suggestion.strip()))
    return rules


def violations(text: str, rules: list[Rule]) -> Iterator[Violation]:
    """Yield the listed phrases in a text.

    The lines are joined by single spaces first, without comment signs and quotation marks, so that
    a phrase is recognised across a line break.
    """
    lines = text.splitlines()
    starts, joined = [], ""
    for line in lines:
        starts.append(len(joined))
        joined += " ".join(_LINE_END.sub("", _LINE_START.sub("", line)).split()) + " "
    for rule in rules:
        for match in rule.pattern.finditer(joined):
            first = bisect_right(starts, match.start()) - 1
            last = bisect_right(starts, match.end() - 1) - 1
            if not any(ESCAPE in line for line in lines[first : last + 1]):
                yield Violation(first + 1, match.group(), rule.suggestion)


def is_checked(path: str) -> bool:
    """Whether a path, relative to the root of the project, holds text that is checked."""
    return any(fnmatch(path, pattern) for pattern in CHECKED) and not any(
        fnmatch(path, pattern) for pattern in EXCLUDED
    )


def tracked_files() -> list[str]:
    """Return the files that git tracks or would track, relative to the root."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S603
    return sorted(path for path in listing.stdout.splitlines() if (ROOT / path).is_file())


def main(paths: list[str]) -> int:
    """Print every violation; return the exit status."""
    rules = read_rules(TABLE.read_text())
    lines = [
        f'{path}:{violation.line}: "{violation.phrase}": use {violation.suggestion}'
        for path in filter(is_checked, paths or tracked_files())
        for violation in sorted(violations((ROOT / path).read_text(), rules))
    ]
    print(*lines, sep="\n", end="\n" if lines else "")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
