"""What the scripts' command lines share: JSON arguments and the one way to report bad input."""

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from zerogap.errors import InputError

# transformers imports these where it finds them, for assisted generation and vision losses, which
# no script uses: more than a second at the start of every job.
for name in ("sklearn", "scipy"):
    sys.modules.setdefault(name, None)


def json_argument(text: str) -> Any:
    """An argparse type: a JSON text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"not JSON ({error}): {text}") from error


def run(main: Callable[[], None]) -> None:
    """Run a script; bad input ends it with its one-line message instead of a traceback."""
    try:
        main()
    except InputError as error:
        sys.exit(f"error: {error}")
