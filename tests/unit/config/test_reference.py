from pydantic import BaseModel

from helpers.paths import ROOT
from zerogap.config.config import Config
from zerogap.config.reference import main, reference


def test_every_key_is_described():
    schema = Config.model_json_schema()
    sections = {"Config": schema, **schema["$defs"]}
    assert len(sections) > 20
    for name, section in sections.items():
        assert section["description"] != BaseModel.__doc__
        for key, field in section["properties"].items():
            assert field.get("description") or "$ref" in field, f"{name}.{key} has no description"


def test_every_key_of_the_reference_has_one_row():
    keys = [line.split("`")[1] for line in reference().splitlines() if line.startswith("| `")]
    assert len(keys) == len(set(keys))
    for key in (
        "seed", "benchmarks.<name>.questions.hub.num_rows.test", "models.<name>.family",
        "benchmarks.<name>.paraphrases.local.max_attempts", "training.lora.rank",
        "strategies.<name>.class", "metrics.bins", "pretraining.gsm8k_fraction",
    ):  # fmt: skip
        assert key in keys


def test_the_reference_shows_type_bounds_and_the_papers_value():
    page = reference()
    assert "| `sampling.num_samples` | integer ≥ 1 | `50` | Responses per question (m). |" in page
    assert "| `sampling.batch_size` | `auto` or integer ≥ 1 | `auto` | " in page
    assert '| `benchmarks.<name>.stop` | list of strings | `["Q:"]` | ' in page


def test_the_reference_is_up_to_date(tmp_path):
    main([str(tmp_path / "configuration.md")])
    written = (tmp_path / "configuration.md").read_text()
    assert (ROOT / "docs/configuration.md").read_text() == written, "run `make docs`"
