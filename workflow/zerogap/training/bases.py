"""The embedded scale's base models: three families, pretrained from scratch on generated text.

Each is its family's class of `transformers` with the traits that decoding has to cope with:
grouped-query attention (Llama); sliding-window layers, layers that share keys and values, two head
sizes and per-layer embeddings (Gemma-4); partial rotary embeddings, parallel residuals (GPT-NeoX).
"""

import hashlib
import itertools
import json
import math
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma4TextConfig,
    GPTNeoXConfig,
    LlamaConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from zerogap.data import prompts
from zerogap.data.instructions import instructions
from zerogap.data.problems import problems
from zerogap.provenance import provenance
from zerogap.training import tokenizers
from zerogap.training.llamafactory import instruction_prompt

CONTEXT = 2048  # positions a base accepts; it is trained on `sequence_length` of them


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


def documents(seed: int, instruction_share: float) -> Iterator[str]:
    """Endless pretraining texts: a few problems one after another, or a few instructions.

    Problems stand as they do in a few-shot prompt ('Q: …\\nA: …' and an empty line).
    """
    rng = random.Random(f"documents/{seed}")
    for part in itertools.count():
        posed = iter(problems(20_000, seed * 1000 + part, "pretrain"))
        asked = itertools.cycle(instructions(2_000, seed * 1000 + part))
        while chosen := list(itertools.islice(posed, rng.randint(1, 5))):
            yield "".join(
                f"Q: {one.question}\nA:{prompts.response(one.rationale, one.gold)}\n\n"
                for one in chosen
            )
            if rng.random() < instruction_share:
                yield "".join(
                    f"{instruction_prompt(one)}{one['response']}\n\n"
                    for one in itertools.islice(asked, rng.randint(1, 5))
                )


def token_blocks(
    texts: Iterator[str], tokenizer: PreTrainedTokenizerBase, batch_size: int, length: int
) -> Iterator[torch.Tensor]:
    """Endless batches (batch_size, length) of packed documents, each [BOS] text EOS."""
    held: list[int] = []
    needed = batch_size * length
    while True:
        while len(held) < needed:
            batch = list(itertools.islice(texts, 256))
            for ids in tokenizer(batch)["input_ids"]:
                held += [*ids, tokenizer.eos_token_id]
        yield torch.tensor(held[:needed]).view(batch_size, length)
        held = held[needed:]


def learning_rate(step: int, steps: int, peak: float, warmup: float) -> float:
    """Linear warm-up over a share of the steps, then a cosine down to a hundredth of the peak."""
    first = max(1, round(steps * warmup))
    if step < first:
        return peak * (step + 1) / first
    done = (step - first) / max(1, steps - first)
    return peak * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * done)))


def optimisers(model: PreTrainedModel, rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the layers' matrices, AdamW for embeddings, the head and vectors."""
    matrices, others = [], []
    for name, parameter in model.named_parameters():
        inner = parameter.ndim == 2 and "embed" not in name
        (matrices if inner else others).append(parameter)
    return [
        torch.optim.Muon(matrices, lr=rate, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=rate, weight_decay=0.0, betas=(0.9, 0.95), fused=True),
    ]


def train(
    model: PreTrainedModel, blocks: Iterator[torch.Tensor], settings: dict[str, Any], log: Path
) -> float:
    """Train in place; the loss goes to the TSV `log` (step, learning_rate, loss, seconds).

    Returns:
        The mean loss (nats a token) of the last twentieth of the steps.
    """
    steps = settings["steps"]
    every = max(1, steps // 100)
    both = optimisers(model, settings["learning_rate"])
    losses: list[float] = []
    start = time.monotonic()
    model.train()
    with log.open("w") as lines:
        print("step", "learning_rate", "loss", "seconds", sep="\t", file=lines)
        for step, block in zip(range(steps), blocks, strict=False):
            rate = learning_rate(step, steps, settings["learning_rate"], settings["warmup_ratio"])
            for group in itertools.chain(*(optimiser.param_groups for optimiser in both)):
                group["lr"] = rate
            with torch.autocast(block.device.type, torch.bfloat16):  # a third faster
                logits = model(input_ids=block, use_cache=False).logits
            loss = torch.nn.functional.cross_entropy(
                logits[:, :-1].flatten(0, 1).float(), block[:, 1:].flatten()
            )
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for optimiser in both:
                optimiser.step()
                optimiser.zero_grad()
            losses.append(loss.item())
            if (step + 1) % every == 0:
                mean = sum(losses[-every:]) / every
                seconds = time.monotonic() - start
                print(
                    step + 1, f"{rate:.3g}", f"{mean:.4f}", f"{seconds:.1f}", sep="\t", file=lines
                )
                lines.flush()
                print(f"step {step + 1}/{steps}  loss {mean:.4f}  {seconds:.0f} s", flush=True)
    last = losses[-max(1, steps // 20) :]
    return sum(last) / len(last)


def pretrain(family: str, settings: dict[str, Any], folder: Path, command: str) -> None:
    """Make one base: tokenizer, weights, loss curve and provenance in `folder`.

    Weights are stored in float16 and declared float32, which is what they load as.

    Args:
        settings: seed, vocabulary, width, layers, feed_forward, steps, batch_size,
            sequence_length, learning_rate, warmup_ratio, instruction_share.
        command: how this was called, for the provenance.
    """
    building = folder.with_name(f".{folder.name}.building")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    start = time.monotonic()
    seed = settings["seed"]
    sample = list(itertools.islice(documents(seed, settings["instruction_share"]), 6000))
    tokenizer = tokenizers.train(sample, family, settings["vocabulary"], CONTEXT)
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(configuration(family, tokenizer, settings))
    texts = documents(seed, settings["instruction_share"])
    blocks = token_blocks(texts, tokenizer, settings["batch_size"], settings["sequence_length"])
    loss = train(model, blocks, settings, building / "loss.tsv")

    model.half().save_pretrained(building)
    described = json.loads((building / "config.json").read_text()) | {"dtype": "float32"}
    (building / "config.json").write_text(json.dumps(described, indent=2, sort_keys=True) + "\n")
    tokenizer.save_pretrained(building)
    weights = (building / "model.safetensors").read_bytes()
    facts = provenance(
        command=command,
        family=family,
        settings=settings,
        parameters=sum(p.numel() for p in model.parameters()),
        final_loss=round(loss, 4),
        minutes=round((time.monotonic() - start) / 60, 1),
        threads=torch.get_num_threads(),
        weights_sha256=hashlib.sha256(weights).hexdigest(),
    )
    (building / "provenance.json").write_text(json.dumps(facts, indent=2, sort_keys=True) + "\n")
    shutil.rmtree(folder, ignore_errors=True)
    building.rename(folder)
