"""The three families of the paper with their tokenizer classes, from training to every strategy.

The architectures are those of the paper's models, including Gemma-4-E2B's vision and audio towers;
widths are tiny and weights random.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open
from transformers import AutoConfig

import decode_greedy
import localise_neurons
import merge_lora
import sample_responses
import train_lora
import write_training_data
from helpers import scripts, tiny_models
from helpers.paths import ROOT
from helpers.toy_tokenizers import TOKENIZERS
from zerogap.config import load
from zerogap.data import openorca, prompts, questions
from zerogap.data.toy.word_problems import problems
from zerogap.io import parquet
from zerogap.pipeline.parameters import job_parameters
from zerogap.sampling import table_jobs

FAMILIES = {"llama": "llama_mha", "gemma4": "gemma4_with_towers", "gpt_neox": "gpt_neox"}
STRATEGIES = {  # with parameters that have an effect on random weights
    "identity": {"class": "identity"},
    "railcap": {"class": "railcap", "parameters": {"n": 1, "suppression": "cap"}},
    "lne_blocking": {"class": "lne_blocking", "parameters": {"beta": 50.0}},
    "shortcut": {"class": "shortcut"},
}
OVERLAY = """
models: {{ llama2: {{ family: {family} }} }}
training:
  lora: {{ rank: 4, alpha: 8 }}
  learning_rate: 0.01
  num_epochs: 2
  global_batch_size: 4
  per_device_batch_size: 2
  bf16: false
  cutoff_len: 400
  save_steps: null
sampling:
  num_samples: 5
  temperature: 0.2
  max_new_tokens: 12
  dtype: float32
  batch_size: 100
neuron_localisation: {{ fraction: 0.5, group_size: 24, num_questions: 1 }}
"""

pytestmark = pytest.mark.slow


class Trained:
    """A folder with a base model, its training data, an adapter and the merged model."""

    def __init__(self, folder: Path, family: str) -> None:
        self.folder, self.family = folder, family
        overlay = folder / "overlay.yaml"
        overlay.write_text(OVERLAY.format(family=family))
        self.config = load([ROOT / "config.yaml", overlay])

    def parameters(self, job: str) -> dict[str, Any]:
        """The parameters of a job on the model, as the workflow writes them."""
        return job_parameters(self.config, f"llama2/gsm8k/{job}")

    def call(self, script: Any, parameters: dict[str, Any], **paths: str) -> None:
        """Call a script on files of the folder."""
        files = {name: self.folder / path for name, path in paths.items()}
        script.main(scripts.options(self.folder, parameters, **files))

    def weights(self, name: str) -> dict[str, Any]:
        """The tensors of a model or adapter, by name."""
        tensors: dict[str, Any] = {}
        for path in (self.folder / name).glob("*.safetensors"):
            with safe_open(path, "pt") as file:
                tensors |= {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        return tensors

    def num_layers(self) -> int:
        config = AutoConfig.from_pretrained(self.folder / "base")
        return int(config.get_text_config().num_hidden_layers)


@pytest.fixture(scope="module", params=FAMILIES)
def trained(request, tmp_path_factory) -> Trained:
    folder = tmp_path_factory.mktemp(request.param)
    tokenizer = TOKENIZERS[request.param]()
    special = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    size = {"vocab_size": len(tokenizer), "max_position_embeddings": 512}
    base = tiny_models.model(FAMILIES[request.param], **size, **special).float()
    base.generation_config.eos_token_id = tokenizer.eos_token_id
    base.save_pretrained(folder / "base")
    tokenizer.save_pretrained(folder / "base")
    if request.param == "gemma4":  # as in its repository, for images and sound
        (folder / "base/processor_config.json").write_text('{"processor_class": "Gemma4Processor"}')

    rows = [questions.Question(p.question, p.rationale, p.gold) for p in problems(8, 0, "test")]
    table = questions.split_test_questions(rows, None, 4, 1)
    parquet.write(folder / "questions.parquet", table, "questions", {})
    long = {"system": "Be\u2028brief.", "question": "Continue:\n- one", "response": "so " * 500}
    short = {"system": "", "question": "Name a colour.", "response": "Red.\nYes."}
    openorca.write(folder / "instructions.jsonl", [long, short])
    (folder / "exemplars.json").write_text(json.dumps(prompts.exemplars("toy", 2)))

    trained = Trained(folder, request.param)
    trained.call(
        write_training_data,
        trained.parameters("write_training_data"),
        base="base",
        questions="questions.parquet",
        instructions="instructions.jsonl",
        exemplars="exemplars.json",
        output="data",
    )
    trained.call(
        train_lora,
        trained.parameters("train_lora"),
        base="base",
        data="data",
        settings="train.yaml",
        adapter="adapter",
        loss="loss.tsv",
    )
    trained.call(
        merge_lora,
        trained.parameters("merge_lora"),
        base="base",
        adapter="adapter",
        output="model",
    )
    return trained


def test_the_adapter_covers_every_decoder_block_and_nothing_else(trained):
    adapted = {name.split(".lora_")[0] for name in trained.weights("adapter")}
    assert adapted
    assert not [name for name in adapted if "tower" in name or "per_layer" in name]
    assert not [name for name in adapted if "lm_head" in name or "embed" in name]
    for layer in range(trained.num_layers()):
        assert [name for name in adapted if f".layers.{layer}." in name]


def test_merging_changes_the_adapted_weights_only(trained):
    before, after = trained.weights("base"), trained.weights("model")
    assert set(before) == set(after)
    base, model = (AutoConfig.from_pretrained(trained.folder / name) for name in ("base", "model"))
    assert base.architectures == model.architectures
    adapted = {name.split(".lora_")[0] for name in trained.weights("adapter")}
    changed = {name for name in before if not before[name].equal(after[name])}
    assert changed
    for name in changed:
        assert any(module.endswith(name.removesuffix(".weight")) for module in adapted), name


def test_every_strategy_decodes_differently(trained):
    inputs = {"questions": "questions.parquet", "exemplars": "exemplars.json"}
    trained.call(
        decode_greedy,
        trained.parameters("decode_greedy"),
        model="model",
        output="greedy.parquet",
        **inputs,
    )
    trained.call(
        localise_neurons,
        trained.parameters("localise_neurons"),
        contaminated="model",
        clean="base",
        base_model="base",
        greedy="greedy.parquet",
        output="neurons.parquet",
        **inputs,
    )
    neurons = parquet.read(trained.folder / "neurons.parquet", "neurons")
    assert sorted(set(neurons.layer)) == list(range(trained.num_layers() - 1))
    token_ids = {}
    for name, strategy in STRATEGIES.items():
        trained.call(
            sample_responses,
            trained.parameters("identity/sample_responses") | {"strategy": strategy},
            model="model",
            greedy="greedy.parquet",
            base_model="base",
            neurons="neurons.parquet",
            samples=f"{name}.parquet",
            solve=f"{name}_solve.parquet",
            **inputs,
        )
        table = parquet.read(trained.folder / f"{name}.parquet", "samples")
        assert table.groupby("question_id").size().eq(5).all()
        assert len(table) == 8 * 5
        token_ids[name] = tuple(map(tuple, table.token_ids))
    assert len(set(token_ids.values())) == len(STRATEGIES)

    folder = trained.folder
    table_jobs.filter_responses(
        questions=folder / "questions.parquet",
        greedy=folder / "greedy.parquet",
        source=folder / "identity.parquet",
        samples=folder / "ted.parquet",
        solve=folder / "ted_solve.parquet",
        strategy={"class": "ted"},
        metadata={},
    )
    assert len(parquet.read(folder / "ted_solve.parquet", "solve")) == 8
