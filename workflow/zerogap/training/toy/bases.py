"""The embedded scale's base models: three families, pretrained from scratch on generated text.

Each is its family's class of `transformers` with the traits that decoding has to cope with:
grouped-query attention (Llama); sliding-window layers, layers that share keys and values, two head
sizes and per-layer embeddings (Gemma-4); partial rotary embeddings, parallel residuals (GPT-NeoX).
"""

import functools
import hashlib
import itertools
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import (
    AutoModelForCausalLM,
    Gemma4TextConfig,
    GPTNeoXConfig,
    LlamaConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from zerogap.data.gsm8k import Row
from zerogap.io.provenance import provenance
from zerogap.io.resume import fingerprint, resumable_dir
from zerogap.training.toy import tokenizers
from zerogap.training.toy.corpus import Corpus, Tokens, blocks, processes
from zerogap.training.toy.pretraining import LossRow, Progress, final_loss, train

CONTEXT = 2048  # positions a base accepts; it is trained on `sequence_length` of them
GSM8K_SHARE = 0.2  # of the documents of generated problems are followed by one of GSM8K's
WEIGHTS = "model.safetensors"


def configuration(family: str, tokenizer: PreTrainedTokenizerBase, size: dict) -> PreTrainedConfig:
    """The model configuration of a family.

    Args:
        family: "llama", "gemma4" or "gpt_neox".
        size: width, layers, feed_forward (the FFN's width).
    """
    common = {
        "vocab_size": len(tokenizer),
        "hidden_size": size["width"],
        "num_hidden_layers": size["layers"],
        "num_attention_heads": 4,
        "intermediate_size": size["feed_forward"],
        "max_position_embeddings": CONTEXT,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    if family == "llama":
        return LlamaConfig(**common, num_key_value_heads=2, tie_word_embeddings=True)
    if family == "gemma4":
        return Gemma4TextConfig(
            **common,
            num_key_value_heads=1,
            head_dim=size["width"] // 4,
            global_head_dim=size["width"] // 2,
            layer_types=["sliding_attention", "full_attention"] * (size["layers"] // 2),
            sliding_window=64,
            num_kv_shared_layers=size["layers"] // 2,
            hidden_size_per_layer_input=16,
            vocab_size_per_layer_input=len(tokenizer),
            tie_word_embeddings=True,
        )
    return GPTNeoXConfig(
        **common,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10_000.0,
            "partial_rotary_factor": 0.5,
        },
        use_parallel_residual=True,
        tie_word_embeddings=False,
    )


def pretrain(
    family: str,
    settings: dict[str, Any],
    folder: Path,
    command: str,
    real: Sequence[Row] = (),
) -> None:
    """Make one base: tokenizer, weights, loss curve and provenance in `folder`.

    On the GPU if there is one. A killed call goes on from its checkpoint in `<folder>.work`.
    Weights are stored in float16 and declared float32, which is what they load as.

    Args:
        settings: seed, vocabulary, width, layers, feed_forward, steps, batch_size,
            sequence_length, learning_rate, warmup_ratio, instruction_share; where `real` is given
            gsm8k_share (0.2 without it); problems, of a text at most (5 without it); checkpoints,
            the steps between two of them.
        command: how this was called, for the provenance.
        real: rows of GSM8K to mix in.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    origin = {
        "family": family,
        "settings": {key: value for key, value in settings.items() if key != "checkpoints"},
        "gsm8k": fingerprint([asdict(row) for row in real]),
        "versions": [torch.__version__, transformers.__version__],
        "device": device.type,
    }
    with resumable_dir(folder, origin) as work:
        corpus = Corpus(
            settings["seed"],
            settings["instruction_share"],
            real,
            settings.get("gsm8k_share", GSM8K_SHARE),
            settings.get("problems", Corpus.problems),
        )
        sample = itertools.islice(corpus.documents(0), 6000)
        tokenizer = tokenizers.train(sample, family, settings["vocabulary"], CONTEXT)
        torch.manual_seed(settings["seed"])
        model = AutoModelForCausalLM.from_config(configuration(family, tokenizer, settings))
        blocks_from = functools.partial(
            blocks,
            Tokens(corpus, tokenizer),
            settings["batch_size"],
            settings["sequence_length"],
            workers=processes() if device.type == "cuda" else 0,
        )
        progress = train(model.to(device), blocks_from, settings, work / "checkpoint.pt")
        built = work / "base"
        _write(built, model, tokenizer, progress)
        facts = provenance(
            command=command,
            family=family,
            settings=settings,
            gsm8k_rows=len(real),
            parameters=sum(p.numel() for p in model.parameters()),
            final_loss=round(final_loss(progress), 4),
            minutes=round(progress.curve[-1].seconds / 60, 1),
            device=torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
            threads=torch.get_num_threads(),
            weights_sha256=hashlib.sha256((built / WEIGHTS).read_bytes()).hexdigest(),
        )
        (built / "provenance.json").write_text(json.dumps(facts, indent=2, sort_keys=True) + "\n")
        shutil.rmtree(folder, ignore_errors=True)
        built.rename(folder)


def _write(
    folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, progress: Progress
) -> None:
    """Model, tokenizer and loss.tsv (step, learning_rate, loss, seconds)."""
    shutil.rmtree(folder, ignore_errors=True)
    model.half().cpu().save_pretrained(folder)
    described = json.loads((folder / "config.json").read_text()) | {"dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(described, indent=2, sort_keys=True) + "\n")
    tokenizer.save_pretrained(folder)
    with (folder / "loss.tsv").open("w") as file:
        print(*LossRow._fields, sep="\t", file=file)
        for step, rate, loss, seconds in progress.curve:
            print(step, f"{rate:.3g}", f"{loss:.4f}", f"{seconds:.1f}", sep="\t", file=file)
