"""The check that a run does not change a prepared base, which other runs may share."""

import json
from pathlib import Path

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
    changed: dict[str, None] = {}
    for rule in jobs.PREPARATION:
        path = Path(jobs.BASES, "parameters", place, f"{rule}.json")
        if not path.exists():
            continue
        before = json.loads(path.read_text())
        now = json.loads(json.dumps(parameters.job_parameters(config, f"{place}/{rule}")))
        for key in before | now:
            if before.get(key) != now.get(key):
                changed |= dict.fromkeys(_inner_changes(key, before.get(key), now.get(key)))
    return list(changed)


def _inner_changes(key: str, before: object, now: object) -> list[str]:
    """`training.num_epochs` instead of `training`, where both values are mappings."""
    if not (isinstance(before, dict) and isinstance(now, dict)):
        return [key]
    return [
        name
        for inner in before | now
        if before.get(inner) != now.get(inner)
        for name in _inner_changes(f"{key}.{inner}", before.get(inner), now.get(inner))
    ]
