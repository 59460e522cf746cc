"""The documentation: links, headings, keys and targets exist; the site has every page."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from _pytest.mark.structures import ParameterSet

from helpers.paths import ROOT

NAMES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "config/README.md", "profiles/README.md")
PAGES = [*(ROOT / name for name in NAMES), *sorted((ROOT / "docs").rglob("*.md"))]
EXTERNAL = re.compile(r"[a-z]+:")


def without_code(text: str) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and mkdocs make them."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.S), re.M
    )
    texts = (re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", text.lower()).strip()) for text in texts}


def links() -> Iterator[ParameterSet]:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text())):
            if not EXTERNAL.match(target):
                yield pytest.param(page, target, id=f"{page.relative_to(ROOT)}: {target}")


@pytest.mark.parametrize(("page", "target"), list(links()))
def test_links_lead_to_a_file_and_a_heading(page: Path, target: str) -> None:
    path, _, anchor = target.partition("#")
    file = page.parent / path if path else page
    assert file.exists()
    if anchor:
        assert anchor in anchors(file)


REFERENCE = ROOT / "docs/configuration.md"
FILE_NAMES = (".md", ".jsonl", ".parquet", ".py", ".smk", ".yaml", ".csv")


def known_keys() -> set[str]:
    """The reference's keys; a benchmark file has those below `benchmarks.<name>`."""
    keys = set(re.findall(r"^- `([^`]+)` \(", REFERENCE.read_text(), re.MULTILINE))
    keys |= {key.removeprefix("benchmarks.<name>.") for key in keys}
    return keys | {key.replace("training.", "training.<kind>.") for key in keys}


KEYS = known_keys()
PATTERNS = [re.compile(re.sub(r"<\w+>", r"[\\w<>*]+", re.escape(key))) for key in KEYS]
SECTIONS = {key.split(".")[0] for key in KEYS if "." in key} | {"data", "decoding", "localisation"}


def mentioned_keys() -> Iterator[ParameterSet]:
    for page in sorted(set(PAGES) - {REFERENCE, ROOT / "CHANGELOG.md"}):
        for key in re.findall(r"`([a-z_]+(?:\.[a-z_<>*]+)+)(?::[^`]*)?`", page.read_text()):
            if key.split(".")[0] in SECTIONS and not key.endswith(FILE_NAMES):
                yield pytest.param(key, id=f"{page.relative_to(ROOT)}: {key}")


@pytest.mark.parametrize("key", list(mentioned_keys()))
def test_mentioned_configuration_key_exists(key: str) -> None:
    assert any(pattern.fullmatch(key) for pattern in PATTERNS)


class _SiteLoader(yaml.SafeLoader):
    """Reads mkdocs.yml without resolving the tags that name Python objects."""


_SiteLoader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def pages_in(navigation: list[Any]) -> Iterator[str]:
    for entry in navigation:
        target = next(iter(entry.values())) if isinstance(entry, dict) else entry
        yield from pages_in(target) if isinstance(target, list) else [target]


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    site = yaml.load((ROOT / "mkdocs.yml").read_text(), Loader=_SiteLoader)
    listed = set(pages_in(site["nav"]))
    assert all((ROOT / "docs" / page).exists() for page in listed)
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages - listed if not page.startswith("smollm2-gsm8k/")} == set()
