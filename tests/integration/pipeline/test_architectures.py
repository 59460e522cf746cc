"""Every published architecture, from training to every strategy: a rehearsal of each.

`make test-architectures` runs them all; the other test targets run the paper's three.
"""

import re
from pathlib import Path

import pytest
from safetensors import safe_open
from transformers import AutoConfig

from helpers import published_models
from helpers.configurations import PAPER, overlaid
from helpers.paths import ROOT
from zerogap.config import load
from zerogap.io import parquet
from zerogap.pipeline import rehearsal

FAMILIES = {"llama2": "llama", "gemma4": "gemma4", "pythia": "gpt_neox"}  # of the paper's models

ARCHITECTURES = [
    pytest.param(name, marks=[pytest.mark.slow] + [pytest.mark.matrix] * (name not in FAMILIES))
    for name in published_models.CONFIGS
]
STAGES = [
    "tokenizer", "model", "data", "training", "merge", "decoder", "greedy", "neurons",
    "clean samples", "strategy identity", "strategy shortcut", "strategy lne_blocking",
    "strategy railcap", "strategy ted", "metrics",
]  # fmt: skip
OVERLAY = {
    "models.gemma": None,
    "models.pythia": None,
    "benchmarks.gsm8k.prompt": {"exemplars": "toy", "num_shots": 2},
    "training.lora.rank": 4,
    # With these, every strategy has an effect on random weights.
    "strategies.railcap.parameters": {"n": 1},
    "strategies.lne_blocking.parameters": {"beta": 50.0},
    "sampling": {"temperature": 0.2, "dtype": "float32"},
    "offline": True,
    "ablation": dict.fromkeys(load(PAPER).ablation),
}


class Rehearsed:
    """The results of a rehearsal, and the files that it leaves."""

    def __init__(self, name: str, folder: Path) -> None:
        base = folder / "published"
        published_models.write_folder(name, base)
        family = FAMILIES.get(name, "auto")
        model = {"models.llama2": {"family": family, "base": str(base), "revision": None}}
        self.results = list(rehearsal.rehearse(overlaid(PAPER, OVERLAY | model), folder))
        self.folder = folder / "llama2"

    def weights(self, name: str) -> dict:
        """The tensors of a model or adapter, by name."""
        tensors = {}
        for path in (self.folder / name).glob("*.safetensors"):
            with safe_open(path, "pt") as file:
                tensors |= {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        return tensors

    @property
    def adapted(self) -> set[str]:
        """The modules that the adapter changes."""
        return {name.split(".lora_")[0] for name in self.weights("adapter")}


def test_the_documentation_lists_every_architecture():
    section = (ROOT / "docs/extend.md").read_text().partition("### Tested architectures")[2]
    names = re.findall(r"`(\w+)`", section.partition("\n## ")[0])
    assert names == list(published_models.CONFIGS)


@pytest.fixture(scope="module", params=ARCHITECTURES)
def rehearsed(request, tmp_path_factory):
    return Rehearsed(request.param, tmp_path_factory.mktemp(request.param))


def test_every_stage_passes(rehearsed):
    failures = [str(result) for result in rehearsed.results if result.status != rehearsal.OK]
    assert failures == []
    assert [result.stage for result in rehearsed.results] == STAGES


def test_the_shared_prompt_cache_fits(rehearsed):
    decoder = next(result for result in rehearsed.results if result.stage == "decoder")
    assert decoder.text == "the shared prompt cache gives the model's own logits"


def test_the_adapter_covers_every_decoder_block_and_nothing_else(rehearsed):
    adapted = rehearsed.adapted
    assert not [name for name in adapted if "tower" in name or "per_layer" in name]
    assert not [name for name in adapted if "lm_head" in name or "embed" in name]
    config = AutoConfig.from_pretrained(rehearsed.folder / "base").get_text_config()
    for layer in range(config.num_hidden_layers):
        assert [name for name in adapted if f".layers.{layer}." in name or f".h.{layer}." in name]


def test_merging_changes_the_adapted_weights_only(rehearsed):
    before, after = rehearsed.weights("base"), rehearsed.weights("model")
    assert set(before) == set(after)
    base, model = (
        AutoConfig.from_pretrained(rehearsed.folder / name) for name in ("base", "model")
    )
    assert base.architectures == model.architectures
    changed = {name for name in before if not before[name].equal(after[name])}
    assert changed
    for name in changed:
        assert any(module.endswith(name.removesuffix(".weight")) for module in rehearsed.adapted)


def test_every_strategy_decodes_differently(rehearsed):
    sampled = [stage.removeprefix("strategy ") for stage in STAGES if "strategy" in stage]
    tables = {
        name: parquet.read(rehearsed.folder / name / "samples.parquet", "samples")
        for name in sampled
        if name != "ted"  # filters the responses of Identity
    }
    token_ids = {name: tuple(map(tuple, table.token_ids)) for name, table in tables.items()}
    assert len(set(token_ids.values())) == len(tables)
