"""Start lm-evaluation-harness with the model type `zerogap`."""

import sys
from collections.abc import Sequence

from lm_eval._cli import HarnessCLI
from lm_eval.api.registry import model_registry
from lm_eval.utils import setup_logging

from zerogap.errors import InputError

NO_TASK = ("No tasks specified", "Tasks not found")  # how lm_eval's errors about --tasks begin


def run(arguments: Sequence[str]) -> None:
    """Run the command `lm_eval` in this process.

    Args:
        arguments: its command line, without the program.

    Raises:
        InputError: no task is given, or one that lm_eval does not have.
    """
    model_registry.register("zerogap", target="zerogap.integrations.lm_eval:StrategyLM")
    setup_logging()
    sys.argv = ["lm_eval", *arguments]
    harness = HarnessCLI()
    try:
        harness.execute(harness.parse_args())
    except ValueError as error:
        if not str(error).startswith(NO_TASK):
            raise
        raise InputError(
            f"--tasks: {error}; `zerogap lm-eval ls tasks` lists all, and --include_path FOLDER "
            "adds your own"
        ) from error
