"""Published configurations, from the models' cards, with a tokenizer of the same kind."""

import shutil
from pathlib import Path

import torch
import transformers as t

from helpers import tiny_models, toy_tokenizers
from helpers.shared_data import TOKENIZERS

GEMMA2_LAYERS = ["sliding_attention", "full_attention"] * 13
GEMMA3_LAYERS = ([*["sliding_attention"] * 5, "full_attention"] * 5)[:26]

# name → class of the configuration, its values, tokenizer (real, and toy where that is absent)
CONFIGS = {
    "llama2": (
        t.LlamaConfig,
        {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
         "num_attention_heads": 32, "max_position_embeddings": 4096},
        ("llama2", "llama"),
    ),
    "llama3": (
        t.LlamaConfig,
        {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 8192,
         "rope_parameters": {"rope_type": "default", "rope_theta": 500_000.0}},
        ("gpt_neox_20b", "gpt_neox"),
    ),
    "smollm2": (
        t.LlamaConfig,
        {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
         "num_attention_heads": 9, "num_key_value_heads": 3, "max_position_embeddings": 8192,
         "tie_word_embeddings": True},
        ("smollm2", "gpt_neox"),
    ),
    "mistral": (
        t.MistralConfig,
        {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 8, "sliding_window": 512},
        ("llama2", "llama"),
    ),
    "qwen2": (
        t.Qwen2Config,
        {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
         "num_attention_heads": 14, "num_key_value_heads": 2, "tie_word_embeddings": True},
        ("gpt_neox_20b", "gpt_neox"),
    ),
    "qwen3": (
        t.Qwen3Config,
        {"hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "head_dim": 128,
         "num_attention_heads": 16, "num_key_value_heads": 8, "tie_word_embeddings": True},
        ("gpt_neox_20b", "gpt_neox"),
    ),
    "gemma2": (
        t.Gemma2Config,
        {"hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "head_dim": 256,
         "num_attention_heads": 8, "num_key_value_heads": 4, "sliding_window": 512,
         "layer_types": GEMMA2_LAYERS},
        (None, "gemma4"),
    ),
    "gemma3": (
        t.Gemma3TextConfig,
        {"hidden_size": 1152, "intermediate_size": 6912, "num_hidden_layers": 26, "head_dim": 256,
         "num_attention_heads": 4, "num_key_value_heads": 1, "sliding_window": 512,
         "layer_types": GEMMA3_LAYERS},
        (None, "gemma4"),
    ),
    "gemma4": (  # with towers
        lambda **values: tiny_models.gemma4(t.Gemma4TextConfig(**values)),
        {"hidden_size": 1536, "intermediate_size": 6144, "num_hidden_layers": 35, "head_dim": 256,
         "global_head_dim": 512, "num_attention_heads": 8, "num_key_value_heads": 1,
         "sliding_window": 512, "num_kv_shared_layers": 20, "hidden_size_per_layer_input": 256,
         "layer_types": [*["sliding_attention"] * 4, "full_attention"] * 7},
        (None, "gemma4"),
    ),
    "phi3": (
        t.Phi3Config,
        {"hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 32, "sliding_window": 2047,
         "pad_token_id": 0},
        ("llama2", "llama"),
    ),
    "olmo2": (
        t.Olmo2Config,
        {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
         "num_attention_heads": 16, "max_position_embeddings": 4096},
        ("gpt_neox_20b", "gpt_neox"),
    ),
    "gpt2": (
        t.GPT2Config,
        {"n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 2048},
        ("gpt_neox_20b", "gpt_neox"),
    ),
    "qwen3_5": (  # three linear layers to a layer of attention
        t.Qwen3_5TextConfig,
        {"hidden_size": 1024, "intermediate_size": 3584, "num_hidden_layers": 24, "head_dim": 256,
         "num_attention_heads": 8, "num_key_value_heads": 2, "linear_num_key_heads": 16,
         "linear_num_value_heads": 16, "tie_word_embeddings": True},
        ("gpt_neox_20b", "gpt_neox"),
    ),
    "smollm3": (
        t.SmolLM3Config,
        {"hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36,
         "num_attention_heads": 16, "num_key_value_heads": 4, "tie_word_embeddings": True,
         "pad_token_id": 0},
        ("gpt_neox_20b", "gpt_neox"),
    ),
    "granite": (
        t.GraniteConfig,
        {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 40,
         "num_attention_heads": 32, "num_key_value_heads": 8, "attention_multiplier": 0.015625,
         "embedding_multiplier": 12.0, "residual_multiplier": 0.22, "logits_scaling": 8.0},
        ("gpt_neox_20b", "gpt_neox"),
    ),
    "pythia": (
        t.GPTNeoXConfig,
        {"hidden_size": 5120, "intermediate_size": 20480, "num_hidden_layers": 36,
         "num_attention_heads": 40, "max_position_embeddings": 2048, "rotary_pct": 0.25},
        ("gpt_neox_20b", "gpt_neox"),
    ),
}  # fmt: skip
ARCHITECTURES = {  # as in the configuration files on the hub
    "gemma4": "Gemma4ForConditionalGeneration",
    "pythia": "GPTNeoXForCausalLM",
}

SECOND_END_TOKENS = {"llama3"}  # an instruction-tuned model ends turns with another token
DTYPES = {"llama2": "float16", "pythia": "float16"}  # that weights are stored in; others: bfloat16


def config(name: str, **values: int) -> t.PreTrainedConfig:
    """A published configuration with some other values."""
    make, published, _ = CONFIGS[name]
    made = make(**published | values)
    made.architectures = [ARCHITECTURES.get(name, "")]
    made.dtype = getattr(torch, DTYPES.get(name, "bfloat16"))
    return made


def write_folder(name: str, folder: Path) -> None:
    """Write a model's configuration and a tokenizer, without weights.

    The real tokenizer is used where it is available, and the vocabulary is the tokenizer's.
    """
    real, toy = CONFIGS[name][2]
    folder.mkdir(parents=True)
    if real and (TOKENIZERS / real).is_dir():
        for path in (TOKENIZERS / real).iterdir():
            shutil.copyfile(path, folder / path.name)
        tokenizer = t.AutoTokenizer.from_pretrained(folder)
    else:
        tokenizer = toy_tokenizers.TOKENIZERS[toy]()
        tokenizer.save_pretrained(folder)
    special = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    if name == "gemma4":
        special["vocab_size_per_layer_input"] = len(tokenizer)
        # As in its repository, for images and sound.
        (folder / "processor_config.json").write_text('{"processor_class": "Gemma4Processor"}')
    config(name, vocab_size=len(tokenizer), **special).save_pretrained(folder)
    if name in SECOND_END_TOKENS:
        ends = [tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids("!")]
        t.GenerationConfig(eos_token_id=ends).save_pretrained(folder)
