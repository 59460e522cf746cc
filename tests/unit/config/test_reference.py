from config_reference import reference

from helpers.paths import ROOT


def test_the_reference_is_up_to_date():
    assert (ROOT / "docs/configuration.md").read_text() == reference(), "run `make docs`"
