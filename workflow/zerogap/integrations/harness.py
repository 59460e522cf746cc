"""Start lm-evaluation-harness with the model type `zerogap`."""

import sys
from collections.abc import Sequence

from lm_eval._cli import HarnessCLI
from lm_eval.api.registry import model_registry
from lm_eval.utils import setup_logging


def run(arguments: Sequence[str]) -> None:
    """Run the command `lm_eval` in this process.

    Args:
        arguments: its command line, without the program.
    """
    model_registry.register("zerogap", target="zerogap.integrations.lm_eval:StrategyLM")
    setup_logging()
    sys.argv = ["lm_eval", *arguments]
    harness = HarnessCLI()
    harness.execute(harness.parse_args())
