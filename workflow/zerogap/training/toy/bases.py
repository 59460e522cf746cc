"""The toy base models: one per registered family, pretrained from scratch on generated text.

Each is its family's `transformers` class, with the features that decoding must cope with:
grouped-query attention (Llama); sliding-window layers, layers that share keys and values, two head
sizes and per-layer embeddings (Gemma 4); partial rotary embeddings, parallel residuals (GPT-NeoX).
"""

import functools
import hashlib
import itertools
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import (
    AutoModelForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from zerogap.data.questions import Question
from zerogap.data.version import DATA_VERSION
from zerogap.families import ToySize, toy_architecture
from zerogap.io.digests import value_digest
from zerogap.io.provenance import provenance
from zerogap.io.resume import resumable_dir
from zerogap.training.toy import tokenizers
from zerogap.training.toy.corpus import Corpus, TokenisedCorpus, num_workers, token_blocks
from zerogap.training.toy.pretraining import LossRow, Progress, final_loss, train

CONTEXT_LENGTH = 2048  # positions a base accepts; it is trained on `sequence_length` of them
_NUM_HEADS = 4
_TOKENIZER_DOCUMENTS = 6000  # from which the tokenizer is learnt
_WEIGHTS = "model.safetensors"


def model_config(
    family: str, tokenizer: PreTrainedTokenizerBase, size: ToySize
) -> PreTrainedConfig:
    """The model configuration of a family's toy model.

    Raises:
        InputError: the family has no toy model.
    """
    shared = {
        "vocab_size": len(tokenizer),
        "hidden_size": size.hidden_size,
        "num_hidden_layers": size.num_layers,
        "num_attention_heads": _NUM_HEADS,
        "intermediate_size": size.intermediate_size,
        "max_position_embeddings": CONTEXT_LENGTH,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    return toy_architecture(family).config(size, shared)


def pretrain(
    family: str,
    settings: Mapping[str, Any],
    folder: Path,
    command: str,
    gsm8k: Sequence[Question] = (),
) -> None:
    """Make one base model in `folder`: tokenizer, weights, loss curve and provenance.

    It runs on the GPU if there is one and resumes from its checkpoint in `<folder>.work`. Weights
    are stored in float16 and declared as float32, which is what they load as.

    Args:
        family: a family with a toy model.
        settings: the configuration's `pretraining` section for this model, and the seed.
        folder: the model folder.
        command: the command line, for the provenance.
        gsm8k: questions of GSM8K to mix in.

    Raises:
        InputError: the family has no toy model, or another process is making the folder.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    inputs = {
        "family": family,
        "settings": {key: value for key, value in settings.items() if key != "save_steps"},
        "gsm8k": value_digest([asdict(question) for question in gsm8k]),
        "versions": [torch.__version__, transformers.__version__],
        "data_version": DATA_VERSION,
        "device": device.type,
    }
    with resumable_dir(folder, inputs) as work:
        model, tokenizer, progress = _train(family, settings, gsm8k, device, work)
        base = work / "base"
        _save_model(base, model, tokenizer, progress)
        metadata = provenance(
            command=command,
            family=family,
            settings=dict(settings),
            gsm8k_rows=len(gsm8k),
            parameters=sum(parameter.numel() for parameter in model.parameters()),
            final_loss=round(final_loss(progress), 4),
            minutes=round(progress.curve[-1].seconds / 60, 1),
            device=torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
            threads=torch.get_num_threads(),
            weights_sha256=hashlib.sha256((base / _WEIGHTS).read_bytes()).hexdigest(),
        )
        text = json.dumps(metadata, indent=2, sort_keys=True) + "\n"
        (base / "provenance.json").write_text(text)
        shutil.rmtree(folder, ignore_errors=True)
        base.rename(folder)


def _train(
    family: str,
    settings: Mapping[str, Any],
    gsm8k: Sequence[Question],
    device: torch.device,
    work: Path,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, Progress]:
    """Learn the tokenizer and train the model, with the checkpoint in the folder `work`."""
    corpus = Corpus(
        settings["seed"],
        settings["instruction_fraction"],
        gsm8k,
        settings["gsm8k_fraction"],
        settings["problems_per_document"],
        settings["language"],
    )
    documents = itertools.islice(corpus.documents(0), _TOKENIZER_DOCUMENTS)
    tokenizer = tokenizers.train(documents, family, settings["vocab_size"], CONTEXT_LENGTH)
    torch.manual_seed(settings["seed"])
    config = model_config(family, tokenizer, ToySize.of(settings))
    model = AutoModelForCausalLM.from_config(config).to(device)
    blocks_from = functools.partial(
        token_blocks,
        TokenisedCorpus(corpus, tokenizer),
        settings["batch_size"],
        settings["sequence_length"],
        workers=num_workers() if device.type == "cuda" else 0,
    )
    return model, tokenizer, train(model, blocks_from, settings, work / "checkpoint.pt")


def _save_model(
    folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, progress: Progress
) -> None:
    """Save model, tokenizer and loss.tsv (step, learning_rate, loss, seconds)."""
    shutil.rmtree(folder, ignore_errors=True)
    model.half().cpu().save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text()) | {"dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    tokenizer.save_pretrained(folder)
    with (folder / "loss.tsv").open("w") as file:
        print(*LossRow._fields, sep="\t", file=file)
        for step, rate, loss, seconds in progress.curve:
            print(step, f"{rate:.3g}", f"{loss:.4f}", f"{seconds:.1f}", sep="\t", file=file)
