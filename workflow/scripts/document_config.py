"""The configuration reference, from the schema and the paper's config.yaml: `make docs`."""

import argparse
import json
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
HEAD = """# Configuration

Generated from `workflow/schemas/config.schema.yaml` by `make docs`; the values are the paper's
(`config.yaml`). A scale is an overlay that holds what differs, given by a profile or with
`--configfile`; single values can be given with `--config 'decoding={samples: 20}'`. An unknown
key or a value out of range is an error that names it, before anything runs.

| key | type | paper's value | meaning |
|---|---|---|---|
"""


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    args = parser.parse_args(argv)
    args.output.write_text(reference())


def reference() -> str:
    """The whole page."""
    schema = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())
    values = yaml.safe_load((ROOT / "config.yaml").read_text())
    return HEAD + "\n".join(_rows(schema, schema["$defs"], values, "")) + "\n"


def _rows(node: dict[str, Any], shared: dict[str, Any], values: Any, path: str) -> list[str]:
    rows = []
    for name, child in node["properties"].items():
        here = f"{path}{name}"
        value = values.get(name) if isinstance(values, dict) else None
        target = shared[child["$ref"].split("/")[-1]] if "$ref" in child else child
        if "properties" in target and "$ref" not in child:
            if "description" in child:
                rows.append(f"| `{here}` | | | {child['description']} |")
            rows += _rows(target, shared, value, f"{here}.")
            continue
        each = target.get("additionalProperties")
        meaning = child.get("description", target.get("description", ""))
        if isinstance(each, dict):
            keys = ", ".join(value or {})
            rows.append(f"| `{here}` | entries by name | {keys} | {meaning} |")
            entry = shared[each["$ref"].split("/")[-1]] if "$ref" in each else each
            if here != "ablation":
                rows += _rows(entry, shared, None, f"{here}.<name>.")
            continue
        rows.append(f"| `{here}` | {_type(target)} | {_value(value)} | {meaning} |")
    return rows


def _type(node: dict[str, Any]) -> str:
    if "enum" in node:
        return " or ".join(f"`{option}`" for option in node["enum"])
    if "anyOf" in node:
        return " or ".join(_type(option) for option in node["anyOf"])
    if "const" in node:
        return f"`{node['const']}`"
    kind = node.get("type", "string")
    kinds = kind if isinstance(kind, list) else [kind]
    bounds = [
        f"{sign} {node[key]}"
        for key, sign in (
            ("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<")
        )
        if key in node
    ]  # fmt: skip
    return " ".join([" or ".join(kinds), *bounds])


def _value(value: Any) -> str:
    if value is None or value == {}:
        return ""
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


if __name__ == "__main__":
    main()
