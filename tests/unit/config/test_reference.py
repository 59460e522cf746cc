from config_reference import reference

from helpers.paths import ROOT


def test_every_key_is_described_once_with_its_type_bounds_and_the_papers_value():
    page = reference()
    keys = [line.split("`")[1] for line in page.splitlines() if line.startswith("- `")]
    assert len(keys) == len(set(keys)) > 90
    for line in (
        "- `sampling.num_samples` (integer ≥ 1; `50`): Responses per question (m).",
        "- `sampling.batch_size` (`auto` or integer ≥ 1; `auto`): Responses decoded",
        '- `benchmarks.<name>.stop` (list of strings; `["Q:"]`): Strings that end',
        "- `benchmarks.<name>.num_test` (integer ≥ 2; `1319`): Test questions",
        "- `models.<name>.family` (string; default `auto`): Architecture",
        "- `models.<name>.preparation.training`: Values",
        "- `training.lora.rank` (integer ≥ 1; `64`): Rank r.",
        "- `strategies.<name>.class` (string): Built-in or installed name",
    ):
        assert line in page
    assert len(page.split()) <= 2200


def test_the_reference_is_up_to_date():
    assert (ROOT / "docs/configuration.md").read_text() == reference(), "run `make docs`"
