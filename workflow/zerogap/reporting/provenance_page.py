"""The provenance of a run: software versions recorded in its files, and the full configuration."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from zerogap.reporting.templates import render_template

TITLE = "Provenance of this run"
FIELDS = ("zerogap", "commit", "python", "platform", "engine", "device")


def collect_versions(provenances: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Field or package to its value; several values, comma-separated, if the files differ.

    Args:
        provenances: Provenance of every file of one stage.
    """
    values: dict[str, dict[str, None]] = {}
    for provenance in provenances:
        fields = {name: provenance.get(name) for name in FIELDS} | provenance["packages"]
        for name, value in fields.items():
            if value is not None:
                values.setdefault(name, {})[str(value)] = None
    return {name: ", ".join(distinct) for name, distinct in values.items()}


def to_html(
    stages: Mapping[str, Mapping[str, str]],
    config: Mapping[str, Any],
    scale: str,
    left_out: Mapping[str, Sequence[str]],
    footer: str = "",
) -> str:
    """A page with one column of versions per stage, and the configuration as YAML.

    Args:
        stages: Stage → field or package → value.
        config: The configuration.
        scale: One sentence on the size of the run.
        left_out: Benchmark → ids of the questions that do not leak because they have no paraphrase.
        footer: Last line of the page.
    """
    return render_template(
        "provenance.html.j2",
        title=TITLE,
        scale=scale,
        left_out=left_out,
        stages=stages,
        names=list(dict.fromkeys(name for versions in stages.values() for name in versions)),
        config=yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True, width=100),
        footer=footer,
    )


def to_json(
    stages: Mapping[str, Mapping[str, str]],
    config: Mapping[str, Any],
    left_out: Mapping[str, Sequence[str]],
) -> str:
    """The same as JSON."""
    content = {"software": stages, "left_out": left_out, "config": config}
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
