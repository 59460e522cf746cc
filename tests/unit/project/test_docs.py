"""The documentation: links, headings and keys exist; the site has every page; a table's values."""

import re
from pathlib import Path

import pandas as pd
import pytest
from config_reference import reference

from helpers.paths import ROOT
from zerogap import metrics

NAMES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "config/README.md", "profiles/README.md")
PAGES = [*(ROOT / name for name in NAMES), *sorted((ROOT / "docs").rglob("*.md"))]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.S), re.M
    )
    texts = (re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", text.lower()).strip()) for text in texts}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\((?![a-z]+:)([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


REFERENCE = ROOT / "docs/configuration.md"
FILE_NAMES = (".md", ".jsonl", ".parquet", ".py", ".smk", ".yaml", ".csv")


def test_the_reference_of_the_configuration_is_up_to_date() -> None:
    assert REFERENCE.read_text() == reference(), "run `make docs`"


def known_keys() -> set[str]:
    """The reference's keys; a benchmark file has those below `benchmarks.<name>`."""
    keys = set(re.findall(r"^- `([^`]+)` \(", REFERENCE.read_text(), re.MULTILINE))
    keys |= {key.removeprefix("benchmarks.<name>.") for key in keys}
    return keys | {key.replace("training.", "training.<kind>.") for key in keys}


KEYS = known_keys()
PATTERNS = [re.compile(re.sub(r"<\w+>", r"[\\w<>*]+", re.escape(key))) for key in KEYS]
SECTIONS = {key.split(".")[0] for key in KEYS if "." in key} | {"data", "decoding", "localisation"}


@pytest.mark.parametrize(
    "page", sorted({*PAGES} - {REFERENCE}), ids=lambda p: str(p.relative_to(ROOT))
)
def test_mentioned_configuration_keys_exist(page: Path) -> None:
    for key in re.findall(r"`([a-z_]+(?:\.[a-z_<>*]+)+)(?::[^`]*)?`", page.read_text()):
        if key.split(".")[0] in SECTIONS and not key.endswith(FILE_NAMES):
            assert any(pattern.fullmatch(key) for pattern in PATTERNS), key


def test_pages_named_in_code_exist() -> None:
    folders = [ROOT / name for name in ("workflow", "profiles", "benchmarks", "tests")]
    files = [
        p for folder in folders for kind in ("py", "smk", "yaml") for p in folder.rglob(f"*.{kind}")
    ]
    for file in [*files, ROOT / "config.yaml", ROOT / "Makefile"]:
        for name, anchor in re.findall(r"\bdocs/([\w-]+\.md)(?:#([\w-]+))?", file.read_text()):
            assert (ROOT / "docs" / name).exists(), f"{file}: {name}"
            assert not anchor or anchor in anchors(ROOT / "docs" / name), f"{file}: {anchor}"


def test_tests_named_in_the_documentation_exist() -> None:
    tests = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}
    for page in PAGES:
        for name in re.findall(r"`([\w/]*\btest_\w+\.py)`", page.read_text()):
            assert any(path.endswith(f"/{name}") or path == name for path in tests), name


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    listed = set(re.findall(r'" = "(\S+\.md)"', (ROOT / "zensical.toml").read_text()))
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if not page.startswith("smollm2-gsm8k/")} == listed


def test_the_table_of_the_second_run_follows_from_its_counts() -> None:
    counts = pd.read_csv(ROOT / "docs/smollm2-gsm8k/second_run.csv")
    counts["all_zero"], fifty = 0, [50] * len(counts)
    page = (ROOT / "docs/results.md").read_text().partition("### A second run")[2]
    rows = {
        "clean model, batch 2 (noise floor)": "clean_batch2", "Identity": "identity",
        "All-Zero": "all_zero", "TED": "ted", "LNE-blocking": "lne_blocking",
        "RailCap": "railcap", "RailCap, n = 7": "railcap_n7",
    }  # fmt: skip
    others = (metrics.a_ppg, metrics.delta_plus, metrics.delta_minus)
    stratified = (metrics.s_delta_plus, metrics.s_delta_minus)
    for name, strategy in rows.items():
        responses = counts.get(f"{strategy}_responses", fifty)
        gaps = (counts[strategy], responses, counts.clean, fifty)
        values = [metrics.sa_ppg(*gaps, bins=bins) for bins in (50, 10, 5)]
        values += [metric(*gaps) for metric in others]
        values += [metric(*gaps, bins=50) for metric in stratified]
        cells = re.search(rf"^\| \W*{re.escape(name)} \|(.*)\|$", page, re.M)[1].split("|")
        del cells[6], cells[:2]  # one response per question; leaked and unleaked questions alone
        shown = [float(re.sub(r"\[.*|\*", "", cell)) for cell in cells]
        assert shown == pytest.approx(values, abs=5.1e-4), name
