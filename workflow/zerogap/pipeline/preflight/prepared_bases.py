"""The check that a run does not change a prepared base, which other runs may share."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from zerogap.config import Config
from zerogap.pipeline import jobs, parameters, targets
from zerogap.pipeline.preflight.result import CheckResult, failed


def check_prepared_bases(config: Config) -> list[CheckResult]:
    """A failure for every prepared base, or its screening, that was made with other values.

    The test questions depend on the screening, and all models on the base, so a run that made
    either again would make those of other runs stale.
    """
    results = []
    for model in jobs.prepared_models(config):
        check, base = f"prepared base of {model}", Path(targets.base_model(config, model))
        screening = Path(targets.screening_of(config, model))
        is_screened = model in jobs.screening_models(config) and screening.exists()
        advice = f"restore the values, set another models.{model}.preparation.name, or delete"
        if base.exists() and (changed := _changed_keys(config, model, jobs.PREPARATION)):
            text = f"{base.parent} was made with another {', '.join(changed)}; {advice} the folder"
            results.append(failed(check, text))
        elif is_screened and (changed := _changed_keys(config, model, jobs.SCREENING)):
            text = (
                f"{screening} was made with another {', '.join(changed)}; {advice} the file, "
                "after which other questions may be drawn and every run that has it starts over"
            )
            results.append(failed(check, text))
    return results


def _changed_keys(config: Config, model: str, rules: Iterable[str]) -> list[str]:
    """The keys of these rules' parameter files that have other values now."""
    place = f"{model}/{config.preparation_for(model).name}"
    changed: list[str] = []
    for rule in rules:
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
