"""A dress rehearsal: the real workflow, with small random copies of the configured models.

The copies have the real tokenizers and architectures. An overlay over the configuration replaces
the models by them and leaves a few questions, samples and training steps.
"""

import json
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel

from zerogap.config import Config
from zerogap.families.structure import config_of
from zerogap.pipeline.models import base_files

NUM_QUESTIONS, NUM_LEAKED, NUM_INSTRUCTIONS = 8, 4, 4
TRAINING = {
    "num_epochs": 1, "global_batch_size": 4, "per_device_batch_size": 2, "num_gpus": 1,
    "learning_rate": 0.01, "group_by_length": False, "save_steps": None,
}  # fmt: skip
HEAD_SIZE = 16  # of a shrunk attention head
_HEADS, _GROUPED_KEYS = 4, 2  # query heads without grouping; key heads with grouping
_PROPORTIONAL = ("intermediate_size", "ffn_dim", "n_inner", "hidden_size_per_layer_input")
_AS_HIDDEN = ("hidden_size", "word_embed_proj_dim")
_MULTIPLE = 8  # shrunk widths are multiples of this
_TOKENIZER_FILES = ("*.json", "*.jinja", "*.model", "*.txt")
_SCALE = 4.0  # of the initial weights, which are so small that attention ignores the tokens

Values = dict[str, Any]


def run_name(config: Config) -> str:
    """The run whose folders in results/ and reports/ a rehearsal uses."""
    return f"{config.run}_rehearsal"


def prepare(config: Config, models: Collection[str], folder: Path) -> tuple[Path, list[str]]:
    """Write small copies of some models and the overlay into a folder.

    Returns:
        The overlay and the files to make: those of every stage up to the metrics.

    Raises:
        InputError: the configuration or tokenizer of a model is not available.
    """
    overlay = _overlay(config, models)
    for model in models:
        base = folder / model
        write_random_model(base_files(config, model), base, config.seed)
        overlay["models"][model] = {
            "base": str(base), "revision": None, "gguf": None, "preparation": None,
        }  # fmt: skip
    path = folder / "overlay.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(overlay, indent=1))
    clean = config.clean_variant(config.primary_setting.benchmark)
    stages = ["metrics", "overlap", "rail", "ranks"]
    made = {clean: ["recovery"], config.primary_setting.benchmark: stages}
    results = Path("results", run_name(config))
    return path, [
        str(results / model / variant / f"{name}.parquet")
        for model in models
        for variant, names in made.items()
        for name in names
    ]


def _overlay(config: Config, models: Collection[str]) -> Values:
    primary = config.primary_setting.benchmark
    kept = {primary, config.owner_of(primary)}
    has_gpu = torch.cuda.is_available()
    trainings = {"clean": config.training.clean, "contaminated": config.training.contaminated}
    return {
        "run": run_name(config),
        "models": dict.fromkeys(config.models),
        "benchmarks": {
            name: _benchmark(config, name) if name in kept else None for name in config.benchmarks
        },
        "primary_setting": {"model": next(iter(models))},
        "ablation": dict.fromkeys(config.ablation),
        "instructions": {"source": "generated", "num_examples": NUM_INSTRUCTIONS},
        "training": {
            kind: TRAINING | {"bf16": training.bf16 and has_gpu}
            for kind, training in trainings.items()
        },
        "sampling": {"num_samples": 5, "max_new_tokens": 12, "num_shards": 1},
        "decoding": {"engine": "zerogap"},
        "neuron_localisation": {"group_size": 64, "num_questions": 2, "num_shards": 1},
        "metrics": {"bins": 5, "n_resamples": 100},
    }


def _benchmark(config: Config, name: str) -> Values:
    """A few questions: of the user's files, or generated ones."""
    entry = config.benchmarks[name]
    values: Values = {}
    if entry.questions_of is None:
        values = {
            "num_test": NUM_QUESTIONS,
            "num_leaked": NUM_LEAKED,
            "num_train": NUM_QUESTIONS,
            "num_preparation": 0,
        }
        if entry.questions.source != "files":
            sizes = {"num_train": NUM_QUESTIONS, "num_test": NUM_QUESTIONS}
            values["questions"] = {"source": "generated", "generated": sizes}
            values["max_calculations"] = None
    if entry.paraphrases is not None:
        values["paraphrases"] = {"method": "rules", "on_invalid": "skip"}
    return values


def write_random_model(source: Path, output: Path, seed: int) -> None:
    """Write a small random model with the configuration and tokenizer files of a real one.

    The vocabulary, the order of the layer types, sliding windows, tied embeddings, positions and
    the type of the stored weights stay as they are. The numbers of layers and attention heads and
    the widths shrink in proportion.
    """
    config = shrunk(config_of(source))
    torch.manual_seed(seed)
    model = _new_model(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(_SCALE)
    model.to(config.dtype or torch.float32).save_pretrained(output)
    for pattern in _TOKENIZER_FILES:
        for path in source.glob(pattern):
            if path.name != "config.json" and not path.name.endswith(".index.json"):
                shutil.copyfile(path, output / path.name)


def shrunk(config: PreTrainedConfig) -> PreTrainedConfig:
    """The configuration of a small model of the same architecture.

    Other modalities' towers keep their width and lose layers.
    """
    values = config.to_dict()
    text = config.get_text_config()
    for name in config.sub_configs:
        part = getattr(config, name, None)
        if part is not None:
            values[name] = _shrunk_values(part, keep_width=part is not text)
    if text is config:
        values = _shrunk_values(config, keep_width=False)
    return type(config).from_dict(values)


def _shrunk_values(config: PreTrainedConfig, keep_width: bool) -> Values:
    values: Values = config.to_dict()
    own_names = config.attribute_map
    num_layers = getattr(config, "num_hidden_layers", None)
    if num_layers:
        kept = _kept_layers(values, num_layers)
        values |= {
            name: [value[layer] for layer in kept]
            for name, value in values.items()
            if _is_per_layer(value, num_layers)
        }
        values[own_names.get("num_hidden_layers", "num_hidden_layers")] = len(kept)
        if shared := values.get("num_kv_shared_layers"):  # the last layers reuse keys and values
            values["num_kv_shared_layers"] = sum(layer >= num_layers - shared for layer in kept)
    if not keep_width:
        _shrink_widths(config, values)
    return values


def _kept_layers(values: Values, num_layers: int) -> list[int]:
    """The first and the last layer of each kind; kinds differ in their per-layer settings."""
    lists = [value for value in values.values() if _is_per_layer(value, num_layers)]
    kinds = [json.dumps([value[layer] for value in lists]) for layer in range(num_layers)]
    last = {kind: layer for layer, kind in enumerate(kinds)}
    first = {kind: layer for layer, kind in reversed(list(enumerate(kinds)))}
    return sorted({*first.values(), *last.values()})


def _is_per_layer(value: Any, num_layers: int) -> bool:
    return isinstance(value, list) and len(value) == num_layers


def _shrink_widths(config: PreTrainedConfig, values: Values) -> None:
    """Shrink heads and widths in proportion; grouped queries keep the size of their groups."""
    heads = config.num_attention_heads
    key_heads = getattr(config, "num_key_value_heads", None) or heads
    head_size = getattr(config, "head_dim", None) or config.hidden_size // heads
    new_key_heads, new_heads = _GROUPED_KEYS, _GROUPED_KEYS * (heads // key_heads)
    if key_heads == heads:
        new_key_heads = new_heads = _HEADS
    elif key_heads == 1:
        new_key_heads, new_heads = 1, heads
    ratio = new_heads * HEAD_SIZE / (heads * head_size)

    own_names = config.attribute_map

    def replace(name: str, value: int) -> None:
        name = own_names.get(name, name)
        if values.get(name):
            values[name] = value

    replace("num_attention_heads", new_heads)
    replace("num_key_value_heads", new_key_heads)
    replace("head_dim", HEAD_SIZE)
    replace("global_head_dim", _scaled(values.get("global_head_dim"), HEAD_SIZE / head_size))
    hidden_size = _scaled(config.hidden_size, ratio)
    for name in _AS_HIDDEN:
        replace(name, hidden_size)
    for name in _PROPORTIONAL:
        replace(name, _scaled(values.get(name), ratio))
    _shorten_rope_factors(values.get("rope_parameters"), HEAD_SIZE / head_size)


def _scaled(value: Any, ratio: float) -> Any:
    """A width, or one per layer, in proportion."""
    if isinstance(value, list):
        return [_scaled(width, ratio) for width in value]
    return value and max(_MULTIPLE, round(value * ratio / _MULTIPLE) * _MULTIPLE)


def _shorten_rope_factors(rope: Values | None, ratio: float) -> None:
    """Long-context rotary embeddings have a factor per pair of a head's dimensions (Phi-3)."""
    for name, value in (rope or {}).items():
        if isinstance(value, dict):
            _shorten_rope_factors(value, ratio)
        elif isinstance(value, list) and rope is not None:
            rope[name] = value[: round(len(value) * ratio)]


def _new_model(config: PreTrainedConfig) -> PreTrainedModel:
    """A model of the class that the configuration names, which may have towers."""
    for name in config.architectures or []:
        if hasattr(transformers, name):
            return getattr(transformers, name)(config)
    return AutoModelForCausalLM.from_config(config)
