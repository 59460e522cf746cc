"""A pretrained language model on two cores: what its scales share."""

import json
import re

import pytest

from helpers.paths import ROOT
from zerogap import config
from zerogap.pipeline import targets
from zerogap.pipeline.report.sources import JOB_COSTS

PROFILE = ROOT / "profiles/smollm2"


@pytest.fixture
def scales(tmp_path):
    """Name of the source → overlays of the scale; GSM8K's files are empty ones."""
    path = tmp_path / "questions.jsonl"
    path.touch()
    files = {"files": {"train": str(path), "test": str(path)}}
    overlay = tmp_path / "files.json"
    overlay.write_text(json.dumps({"benchmarks": {"gsm8k": {"questions": files}}}))
    shared = PROFILE / "smollm2.yaml"
    return {
        "gsm_symbolic": [shared, PROFILE / "gsm_symbolic.yaml"],
        "gsm8k": [shared, PROFILE / "gsm8k.yaml", overlay],
    }


@pytest.mark.parametrize("source", ["gsm_symbolic", "gsm8k"])
def test_the_clean_model_and_shortcut_start_from_the_prepared_base(scales, source):
    scale = config.load([ROOT / "config.yaml", *scales[source]])
    [owner] = scale.question_owners
    prepared = targets.base_model(scale, "smollm2")
    assert re.fullmatch(rf"results/bases/smollm2/{source}-[0-9a-f]{{8}}/model", prepared)
    assert targets.starting_model(scale, "smollm2", f"clean_{owner}") == prepared
    shortcut = targets.strategy_inputs(scale, "smollm2", owner, "shortcut")
    assert shortcut["base_model"] == prepared


def test_strategies_and_lora_are_those_of_the_paper(scales):
    paper = config.load([ROOT / "config.yaml"])
    for overlays in scales.values():
        scale = config.load([ROOT / "config.yaml", *overlays])
        for section in ("strategies", "metrics"):
            assert getattr(scale, section) == getattr(paper, section)
        assert paper.ablation.items() <= scale.ablation.items()
        for key in ("num_samples", "temperature", "top_p", "dtype"):
            assert getattr(scale.sampling, key) == getattr(paper.sampling, key)
        for kind in ("clean", "contaminated"):
            training, published = (getattr(c.training, kind) for c in (scale, paper))
            for key in ("lora", "learning_rate", "lr_scheduler", "warmup_ratio", "bf16"):
                assert getattr(training, key) == getattr(published, key)


def test_the_preparation_counts_in_the_cost_of_a_run(scales):
    scale = config.load([ROOT / "config.yaml", *scales["gsm8k"]])
    job, training, *_ = JOB_COSTS.locate(scale)
    assert [job["name"], training["name"]] == ["train_preparation", "train_lora"]
    assert (job["model"], job["variant"]) == ("smollm2", "")
    folder = targets.preparations(scale)[0]
    assert job["timings"] == [f"results/bases/timings/smollm2/{folder}/train_preparation.tsv"]
