"""The check that a run does not change a prepared base, which other runs may share."""

import json
from pathlib import Path
from typing import Any

from zerogap.config import Config
from zerogap.pipeline import jobs, parameters, targets
from zerogap.pipeline.preflight.result import CheckResult, failed


def check_prepared_bases(config: Config) -> list[CheckResult]:
    """A failure for every prepared base that was made with other values than the configuration's.

    The values of the screening do not count: it is short, and the base does not depend on it.
    """
    results = []
    for model in jobs.prepared_models(config):
        made = Path(targets.base_model(config, model))
        if made.exists() and (changed := _changed_keys(config, model)):
            results.append(
                failed(
                    f"prepared base of {model}",
                    f"{made.parent} was made with another {', '.join(changed)}; restore the "
                    f"values, set another models.{model}.preparation.name, or delete the folder",
                )
            )
    return results


def _changed_keys(config: Config, model: str) -> list[str]:
    """The keys of the preparation's parameter files that have other values now."""
    place = f"{model}/{config.preparation_for(model).name}"
    changed: list[str] = []
    for rule in jobs.PREPARATION:
        path = Path(jobs.BASES, "parameters", place, f"{rule}.json")
        if path.exists():
            now = json.loads(json.dumps(parameters.job_parameters(config, f"{place}/{rule}")))
            changed += _changes(json.loads(path.read_text()), now)
    return list(dict.fromkeys(changed))


def _changes(before: dict[str, Any], now: dict[str, Any], prefix: str = "") -> list[str]:
    """The keys with other values, with dots where a mapping is within another."""
    changed = []
    for key in before | now:
        old, new = before.get(key), now.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            changed += _changes(old, new, f"{prefix}{key}.")
        elif old != new:
            changed.append(f"{prefix}{key}")
    return changed
