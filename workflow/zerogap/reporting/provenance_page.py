"""What a run was made by: the versions that its files tell of, and the resolved configuration."""

import json
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import yaml

from zerogap.reporting.html_page import page
from zerogap.reporting.render import html

TITLE = "What this run was made by"
FACTS = ("zerogap", "commit", "python", "platform", "device")


def versions(made: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Fact or package → its value; more than one where files were made by different ones.

    Args:
        made: the provenances of the files of one stage.
    """
    found: dict[str, dict[str, None]] = {}
    for one in made:
        facts = {name: one.get(name) for name in FACTS} | one["packages"]
        for name, value in facts.items():
            if value is not None:
                found.setdefault(name, {})[str(value)] = None
    return {name: ", ".join(values) for name, values in found.items()}


def to_html(
    stages: Mapping[str, Mapping[str, str]], config: Mapping[str, Any], scale: str, footer: str = ""
) -> str:
    """A page with a column a stage, and the configuration as YAML."""
    names = dict.fromkeys(name for found in stages.values() for name in found)
    head = "".join(f'<th class="text">{html(stage)}</th>' for stage in stages)
    rows = "\n".join(
        f"<tr><td>{html(name)}</td>"
        + "".join(
            f'<td class="text">{html(found.get(name, "–"))}</td>' for found in stages.values()
        )
        + "</tr>"
        for name in names
    )
    text = yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True, width=100)
    return page(
        TITLE,
        f"<h1>{TITLE}</h1>\n<p>{html(scale)}</p>\n<h2>Software</h2>\n"
        f'<div class="wide"><table>\n<thead>\n<tr><th></th>{head}</tr>\n</thead>\n'
        f"<tbody>\n{rows}\n</tbody>\n</table></div>\n"
        f"<h2>Configuration, with every overlay applied</h2>\n<pre>{escape(text)}</pre>",
        footer,
    )


def to_json(stages: Mapping[str, Mapping[str, str]], config: Mapping[str, Any]) -> str:
    return json.dumps({"software": stages, "config": config}, indent=2, ensure_ascii=False) + "\n"
