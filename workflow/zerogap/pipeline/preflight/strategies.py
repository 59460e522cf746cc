"""Checks of the strategies: each is built as the jobs will build it, and filters are prepared."""

from zerogap.config import Config
from zerogap.pipeline.preflight.result import OK, CheckResult, input_errors_as_failures
from zerogap.strategies.base import build, response_filter


def check_strategies(config: Config) -> list[CheckResult]:
    """Whether every strategy can be imported and accepts its parameters."""
    results: list[CheckResult] = []
    for name, entry in config.all_strategies.items():
        check = f"strategy {name}"
        with input_errors_as_failures(results, check):
            strategy = build({"class": entry.class_name, "parameters": dict(entry.parameters)})
            if entry.filter_of is not None:
                response_filter(strategy)
            results.append(CheckResult(OK, check, repr(strategy)))
    return results
