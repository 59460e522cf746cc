import copy
import hashlib
import json
import re

import pytest
import yaml

from helpers.paths import ROOT
from zerogap.config import load, pretraining, restore_order, stage, validate
from zerogap.errors import InputError

PAPER = yaml.safe_load((ROOT / "config.yaml").read_text())

EMBEDDED = yaml.safe_load((ROOT / "profiles/quick/embedded.yaml").read_text())
PRETRAINING = EMBEDDED["pretraining"]


def changed(path: str, value):
    config = copy.deepcopy(PAPER)
    *folders, last = path.split(".")
    place = config
    for folder in folders:
        place = place[folder]
    place[last] = value
    return config


def test_overlays_are_put_together_as_a_run_does_it(tmp_path):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("seed: 3\nmodels: { gemma: null }\ndecoding: { samples: 7 }\n")
    config = load([ROOT / "config.yaml", overlay])
    assert config["seed"] == 3
    assert list(config["models"]) == [name for name in PAPER["models"] if name != "gemma"]
    assert config["decoding"] == PAPER["decoding"] | {"samples": 7}
    assert list(config) == list(PAPER)


def test_a_key_that_stands_twice_in_an_overlay_is_named(tmp_path):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("decoding:\n  samples: 7\n  samples: 8\n")
    with pytest.raises(InputError, match=r"overlay.yaml, line 3: decoding.samples stands there"):
        load([ROOT / "config.yaml", overlay])


def test_the_papers_protocol_is_valid_and_the_papers():
    validate(PAPER)
    assert PAPER["data"]["n_test"] == 1319
    assert PAPER["data"]["n_leaked"] == PAPER["data"]["n_train"] == 660
    assert PAPER["data"]["instructions"]["n"] == 1840
    assert PAPER["decoding"]["samples"] == PAPER["metrics"]["bins"] == 50
    assert PAPER["decoding"]["temperature"] == 0.7
    assert stage(PAPER, "gsm8k")["lora"] == {"rank": 64, "alpha": 128, "dropout": 0.0}


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("nonsense", 1, "unknown key nonsense"),
        ("decoding.samples", 0, "decoding.samples"),
        ("decoding.temperatur", 0.7, "unknown key temperatur"),
        ("decoding.temperature", "warm", "decoding.temperature"),
        ("data.source", "web", "data.source"),
        ("data.n_leaked", 1319, "unleaked questions remain"),
        ("data.source", "files", "data.files.train"),
        ("data.hub.sha256", "abc", "data.hub.sha256"),
        ("data.paraphrases.method", "local", "data.paraphrases.local.model is not set"),
        ("data.paraphrases.invalid", "skip", "data.paraphrases.invalid"),
        ("models.llama2.family", "bert", "models.llama2.family"),
        ("models", {}, "models"),
        ("models", {"a b": PAPER["models"]["gemma"]}, "a b"),
        ("benchmarks.clean", {"label": "x", "leaks": "question"}, "benchmarks"),
        ("strategies.ted.filters", "nobody", "strategies.ted.filters"),
        ("strategies.all_zero", PAPER["strategies"]["identity"], "taken"),
        ("ablation.railcap", PAPER["strategies"]["railcap"], "rename"),
        ("setting.model", "gpt", "setting.model"),
        ("training.global_batch_size", 30, "no multiple"),
        ("training.gpus", 3, "per_device_batch_size × gpus = 12"),
        ("training.checkpoints", "often", "training.checkpoints"),
        ("training.clean", {"group_by_length": True}, "make it epoch or null"),
        ("training.bf16", "yes", "training.bf16"),
        ("training.clean", {"lr": 1}, "unknown key lr"),
        ("models.llama2.base", "pretrained", "pretraining is missing.*models.llama2"),
        ("pretraining", {"steps": 5}, "pretraining.*is a required property"),
        ("pretraining", PRETRAINING | {"gsm8k": "absent.jsonl"}, "pretraining.gsm8k is 'absent"),
    ],
)
def test_a_mistake_is_named(path, value, said):
    with pytest.raises(InputError, match=said):
        validate(changed(path, value))


def test_what_is_fetched_from_a_hub_is_pinned_to_a_commit():
    data = PAPER["data"]
    fetched = [data["hub"], data["instructions"]["hub"], *PAPER["models"].values()]
    for one in fetched:
        assert re.fullmatch("[0-9a-f]{40}", one["revision"])
    assert data["hub"]["rows"] == {"train": 7473, "test": 1319}


def test_a_key_that_misses_is_named():
    config = copy.deepcopy(PAPER)
    del config["decoding"]["stop"]
    with pytest.raises(InputError, match="decoding.*'stop'"):
        validate(config)


def test_a_stage_overrides_what_differs():
    config = changed("training.contaminated", {"epochs": 20, "lora": {"rank": 8}})
    assert stage(config, "clean")["epochs"] == 5
    contaminated = stage(config, "pq")
    assert contaminated["epochs"] == 20
    assert contaminated["lora"] == {"rank": 8, "alpha": 128, "dropout": 0.0}
    assert "clean" not in contaminated


def test_keys_keep_the_order_of_the_file_below():
    config = {"c": 1, "b": {"new": 0, "y": 1, "x": 2}, "a": {"z": 0}}
    restore_order(config, {"a": 0, "b": {"x": 0, "y": 0}, "gone": 0, "c": 0})
    assert json.dumps(config) == '{"a": {"z": 0}, "b": {"x": 2, "y": 1, "new": 0}, "c": 1}'


def test_a_bases_pretraining_overrides_what_differs():
    config = changed("models.gemma.pretraining", {"steps": 7}) | {"pretraining": PRETRAINING}
    validate(config)
    assert pretraining(config, "gemma") == PRETRAINING | {"steps": 7, "seed": 0}
    assert pretraining(config, "llama2") == PRETRAINING | {"seed": 0}


def test_every_key_is_described():
    """The configuration reference is generated from these."""
    schema = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())

    def walk(node, path):
        for name, child in node.get("properties", {}).items():
            if "properties" not in child and "$ref" not in child:
                assert child.get("description"), f"{path}{name} has no description"
            walk(child, f"{path}{name}.")

    walk(schema, "")


def test_the_reference_is_up_to_date():
    import document_config

    written = (ROOT / "docs/configuration.md").read_text()
    assert written == document_config.reference(), "run `make docs`"


def test_the_shipped_bases_are_those_of_their_provenance():
    folders = sorted((ROOT / "workflow/resources/bases").glob("*/"))
    assert [folder.name for folder in folders] == ["gemma", "llama2", "pythia"]
    for folder in folders:
        weights = (folder / "model.safetensors").read_bytes()
        made = json.loads((folder / "provenance.json").read_text())
        assert hashlib.sha256(weights).hexdigest() == made["weights_sha256"]
