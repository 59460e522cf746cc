"""The first stages of a rehearsal: tokenizer, small copy, data, LoRA training, merge."""

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from transformers import AutoConfig, AutoTokenizer

from zerogap.config import Config
from zerogap.data import gsm8k_format, openorca, prompts, questions, toy
from zerogap.data.extraction import extraction_rule
from zerogap.errors import InputError
from zerogap.families import family_of_folder
from zerogap.io import parquet
from zerogap.pipeline.base_files import check_chat_template
from zerogap.pipeline.rehearsal.model_copy import (
    NUM_INSTRUCTIONS,
    NUM_LEAKED,
    NUM_QUESTIONS,
    ModelCopy,
)
from zerogap.pipeline.rehearsal.shrinking import write_random_model
from zerogap.training import examples
from zerogap.training.llamafactory import launching, precision, settings
from zerogap.training.merging import merge_adapter

NUM_STEPS = 2  # of the training: leaked questions and instructions in batches of four
TRAINING = {
    "num_epochs": 1, "global_batch_size": 4, "per_device_batch_size": 2, "num_gpus": 1,
    "learning_rate": 0.01, "lr_scheduler": "constant", "warmup_ratio": 0.0,
    "group_by_length": False, "save_steps": None,
}  # fmt: skip


def read_tokenizer(copy: ModelCopy) -> str:
    """Load the tokenizer and check that it fits the model and the prompts."""
    tokenizer = AutoTokenizer.from_pretrained(copy.source)
    if tokenizer.eos_token_id is None:
        raise InputError(
            "the tokenizer has no end token, so no response would ever end; set eos_token in "
            "tokenizer_config.json"
        )
    entry = copy.config.models[copy.model]
    check_chat_template(copy.model, entry, copy.source / "tokenizer_config.json")
    vocabulary = AutoConfig.from_pretrained(copy.source).get_text_config().vocab_size
    if len(tokenizer) > vocabulary:
        raise InputError(
            f"the tokenizer has {len(tokenizer)} tokens, but the model only {vocabulary}; use "
            "the tokenizer of this model"
        )
    return f"{type(tokenizer).__name__} with {len(tokenizer)} tokens"


def make_base(copy: ModelCopy) -> str:
    """Write the small copy and derive its family."""
    if copy.real_weights:
        copy.base.symlink_to(copy.source.resolve())
    else:
        write_random_model(copy.source, copy.base, copy.config.seed, real_width=copy.real_width)
    real, small = (
        AutoConfig.from_pretrained(path).get_text_config() for path in (copy.source, copy.base)
    )
    family = family_of_folder(copy.base, copy.config.models[copy.model].family)
    targets = ", ".join(dict.fromkeys(t.rpartition(".")[2] for t in family.lora_targets))
    return (
        f"{real.model_type}, {small.num_hidden_layers} of {real.num_hidden_layers} layers, "
        f"hidden size {small.hidden_size} of {real.hidden_size}, LoRA on {targets}"
    )


def write_data(copy: ModelCopy) -> str:
    """Write questions, few-shot exemplars and training data."""
    benchmark, seed = copy.config.benchmarks[copy.benchmark], copy.config.seed
    table = questions.split_test_questions(
        _questions(copy.config, copy.benchmark), NUM_QUESTIONS, NUM_LEAKED, seed
    )
    parquet.write(copy.inputs["questions"], table, "questions", {})
    prompt = benchmark.prompt.model_dump()
    shots = prompts.exemplars(prompt["exemplars"], prompt["num_shots"])
    copy.inputs["exemplars"].write_text(json.dumps(shots))

    tokenizer = AutoTokenizer.from_pretrained(copy.base)
    template = prompts.PromptTemplate.of(prompt)
    cutoff_len = copy.config.training_for(copy.benchmark).cutoff_len
    pairs = examples.question_pairs(table[table.leaked], shots, "question", template)
    instruction_pairs = examples.instruction_pairs(_instructions(copy.config))
    datasets = {
        "instructions": examples.instruction_examples(instruction_pairs, tokenizer, cutoff_len),
        "questions": examples.question_examples(pairs, tokenizer, cutoff_len),
    }
    settings.write_datasets(copy.folder / "data", datasets)
    num_tokens = len(tokenizer(pairs[0][0])["input_ids"])
    return f"{NUM_QUESTIONS} questions, prompts of about {num_tokens} tokens"


def train(copy: ModelCopy) -> str:
    """Train a LoRA adapter for two steps."""
    parameters = copy.parameters("train_lora")
    path, adapter = copy.folder / "train.yaml", copy.folder / "adapter"
    training = _short(parameters["training"])
    base = precision.base_to_load(copy.base, training, copy.folder / "float32_base")
    sections = settings.train_settings(
        base, copy.folder / "data", parameters["family"], training, adapter
    )
    settings.write_settings(path, sections)
    launching.train(path)
    losses = launching.loss_curve(adapter, copy.model, copy.benchmark).loss
    if len(losses) != NUM_STEPS or not all(map(math.isfinite, losses)):
        raise InputError(
            f"the training's losses are {list(losses)}, not {NUM_STEPS} finite numbers; try "
            "training.bf16: false"
        )
    return f"{NUM_STEPS} LoRA steps, loss {losses.iloc[0]:.2f} to {losses.iloc[-1]:.2f}"


def merge(copy: ModelCopy) -> str:
    """Merge the adapter, and check which weights have changed."""
    merge_adapter(copy.base, copy.folder / "adapter", copy.merged, "float32")
    before, after = _weights(copy.base), _weights(copy.merged)
    if set(before) != set(after):
        different = ", ".join(sorted(set(before) ^ set(after))[:3])
        raise InputError(
            f"base and merged model have different weights ({different} …), so the merged "
            "model cannot replace its base; name the model's family (docs/extend.md)"
        )
    changed = [
        name for name in before if not torch.equal(before[name]().float(), after[name]().float())
    ]
    if not changed:
        raise InputError(
            "the merged model equals its base: the training changed nothing; check "
            "training.lora and the model's family"
        )
    return f"{len(changed)} of {len(before)} weights changed"


def _short(training: dict[str, Any]) -> dict[str, Any]:
    """The training as in the run, but short; without a GPU in float32."""
    return training | TRAINING | {"bf16": training["bf16"] and torch.cuda.is_available()}


def _questions(config: Config, benchmark: str) -> list[questions.Question]:
    """Questions of the benchmark's own file, or generated ones if it has none."""
    entry = config.benchmarks[benchmark]
    files = entry.questions.files
    if entry.questions.source == "files" and files and files.test:
        gold = extraction_rule(entry.extraction).parse_gold
        rows = gsm8k_format.load(files.test, gold)[:NUM_QUESTIONS]
        if len(rows) == NUM_QUESTIONS:
            return rows
    generated = toy.problems(NUM_QUESTIONS, config.seed, "test")
    return [questions.Question(p.question, p.rationale, p.gold) for p in generated]


def _instructions(config: Config) -> list[dict[str, str]]:
    """Instructions of the local file, or generated ones; one has awkward line breaks."""
    section = config.instructions
    if section.source == "files" and section.files:
        return openorca.load(section.files, NUM_INSTRUCTIONS, config.seed)
    awkward = {
        "system": "Be\u2028brief.",
        "question": "Continue:\n- one",
        "response": "Red.\n\nYes.",
    }
    return [*toy.instructions(NUM_INSTRUCTIONS - 1, config.seed), awkward]


def _weights(folder: Path) -> dict[str, Callable[[], torch.Tensor]]:
    """The weights of a model: name → function that reads the tensor."""

    def read(path: Path, name: str) -> torch.Tensor:
        with safe_open(path, "pt") as file:
            return file.get_tensor(name)  # type: ignore[no-any-return]

    weights: dict[str, Callable[[], torch.Tensor]] = {}
    for path in folder.glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            names = list(file.keys())
        weights |= {name: partial(read, path, name) for name in names}
    return weights
