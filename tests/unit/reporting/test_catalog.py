"""The catalogue is complete: every entry has a function, its sources and a caption."""

import inspect
from importlib import import_module

import pytest

from helpers.paths import ROOT
from zerogap.pipeline.report_sources import SOURCES
from zerogap.reporting.catalog import FIGURES, TABLES
from zerogap.reporting.sources import READERS

ENTRIES = [*TABLES.values(), *FIGURES.values()]


def test_every_source_has_a_reader():
    assert set(SOURCES) == set(READERS)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.caption}-{entry.name}")
def test_an_entry_names_a_function_with_its_arguments_and_known_sources(entry):
    module, _, name = entry.function.partition(":")
    function = getattr(import_module(f"zerogap.reporting.{module}"), name)
    inspect.signature(function).bind(**entry.arguments)
    assert set(entry.arguments.values()) <= set(SOURCES)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.caption}-{entry.name}")
def test_an_entry_has_a_caption_that_starts_with_a_bold_title(entry):
    caption = (ROOT / "workflow/report" / entry.caption).read_text()
    assert caption.startswith("**")
