"""The toy base models of the quick run and the tests: `make pretrain` makes all three again.

    python -m zerogap.training.toy FOLDER

There is one per registered family, pretrained from scratch on the toy language
(:mod:`zerogap.data.toy`, which also has the criteria that the models must meet). Each is its
family's `transformers` class, with the features that decoding must cope with (toy.yaml).
"""

import argparse
import hashlib
import itertools
import json
import math
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import torch
import yaml
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from zerogap.data import toy
from zerogap.data.prompts import DEFAULT_TEMPLATE
from zerogap.io.provenance import provenance
from zerogap.training.examples import instruction_prompt


@dataclass(frozen=True)
class ToyModel:
    """What differs between the toy models."""

    config: dict[str, Any]  # values that not all models have, the type included
    special_tokens: list[str]  # their ids are their positions here
    bos: str
    eos: str
    pad: str
    adds_bos: bool
    steps: int  # of the optimiser


_MODELS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
BASES = {name: ToyModel(**values) for name, values in _MODELS.items()}
VOCAB_SIZE = 800
CONTEXT_LENGTH = 2048  # positions a base accepts; it is trained on SEQUENCE_LENGTH of them
SEQUENCE_LENGTH = 192
_BATCH_SIZE = 8
_PEAK_RATE, _WARMUP_STEPS = 0.004, 30
_PROBLEMS_PER_PART = 5000
_INSTRUCTION_FRACTION = 0.12  # probability that a document of instructions follows one of problems
TOKENIZER_DOCUMENTS = 3000  # from which the tokenizer is learnt


def pretrain(name: str, folder: Path, max_steps: int | None = None) -> None:
    """Make one base model: tokenizer, weights and `provenance.json`.

    With the same package versions and processor, the result is the same model. The weights are
    stored in float16 and declared as float32, which is what they load as. An existing `folder` is
    overwritten; `max_steps` replaces the model's own number of steps.
    """
    steps = max_steps or BASES[name].steps
    texts = itertools.islice(documents(), TOKENIZER_DOCUMENTS)
    tokenizer = train_tokenizer(texts, name, VOCAB_SIZE)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(model_config(name, tokenizer))
    loss = _train(model, token_blocks(tokenizer), steps)
    shutil.rmtree(folder, ignore_errors=True)
    model.half().save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text()) | {"dtype": "float32"}
    _write_json(folder / "config.json", config)
    tokenizer.save_pretrained(folder)
    vocabulary = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps(vocabulary, ensure_ascii=False))
    metadata = provenance(
        command="make pretrain",
        steps=steps,
        final_loss=round(loss, 4),
        weights_sha256=hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest(),
    )
    _write_json(folder / "provenance.json", metadata)


def _write_json(path: Path, content: dict[str, object]) -> None:
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")


def train_tokenizer(texts: Iterable[str], name: str, vocab_size: int) -> PreTrainedTokenizerFast:
    """Learn a byte-level BPE tokenizer with a model's special tokens.

    The models' tokenizers split text in the same way and differ, as the real ones do, in their
    special tokens and in whether they add a BOS token by themselves. Each digit and each newline is
    a token of its own, so that the tokens of the exemplars are a prefix of those of a prompt.
    """
    model = BASES[name]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\n|\d"), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=model.special_tokens,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    if model.adds_bos:
        bos = (model.bos, tokenizer.token_to_id(model.bos))
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{model.bos} $A", pair=f"{model.bos} $A $B", special_tokens=[bos]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=model.bos,
        eos_token=model.eos,
        pad_token=model.pad,
        model_max_length=CONTEXT_LENGTH,
        clean_up_tokenization_spaces=False,
    )


def model_config(name: str, tokenizer: PreTrainedTokenizerBase) -> PreTrainedConfig:
    """The configuration of a toy model."""
    return AutoConfig.for_model(
        **BASES[name].config,
        vocab_size=len(tokenizer),
        hidden_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=CONTEXT_LENGTH,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        **({"vocab_size_per_layer_input": len(tokenizer)} if name == "gemma" else {}),
    )


def documents() -> Iterator[str]:
    r"""The endless text: one to five problems as in a few-shot prompt, or some instructions."""
    rng = Random("documents")
    for part in itertools.count():
        problems = iter(toy.problems(_PROBLEMS_PER_PART, part, "pretrain"))
        tasks = itertools.cycle(toy.instructions(_PROBLEMS_PER_PART // 5, part))
        while solved := list(itertools.islice(problems, rng.randint(1, 5))):
            yield "".join(
                DEFAULT_TEMPLATE.prompt("", problem.question)
                + DEFAULT_TEMPLATE.response(problem.rationale, problem.gold)
                + DEFAULT_TEMPLATE.separator
                for problem in solved
            )
            if rng.random() < _INSTRUCTION_FRACTION:
                yield "".join(
                    f"{instruction_prompt(task)}{task['response']}\n\n"
                    for task in itertools.islice(tasks, rng.randint(1, 5))
                )


def token_blocks(tokenizer: PreTrainedTokenizerBase) -> Iterator[torch.Tensor]:
    """Endless batches of packed documents, each as [BOS] text EOS: ids (batch, sequence)."""
    needed = _BATCH_SIZE * SEQUENCE_LENGTH
    ids: list[int] = []
    for document in documents():
        ids += [*tokenizer(document)["input_ids"], tokenizer.eos_token_id]
        if len(ids) >= needed:
            yield torch.tensor(ids[:needed]).view(_BATCH_SIZE, SEQUENCE_LENGTH)
            ids = ids[needed:]


def _train(model: PreTrainedModel, blocks: Iterator[torch.Tensor], max_steps: int) -> float:
    """Train the model in place; the mean loss (nats per token) of the last fifty steps."""
    # Muon trains the matrices inside the layers, AdamW embeddings, head and vectors.
    named = dict(model.named_parameters())
    matrices = [named[name] for name in named if named[name].ndim == 2 and "embed" not in name]
    others = [named[name] for name in named if named[name].ndim != 2 or "embed" in name]
    momenta = [torch.zeros_like(matrix) for matrix in matrices]
    adam = torch.optim.AdamW(others, weight_decay=0.0, betas=(0.9, 0.95), fused=True)
    losses: list[float] = []
    model.train()
    for step, block in zip(range(max_steps), blocks, strict=False):
        logits = model(input_ids=block, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1), block[:, 1:].flatten()
        )
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.param_groups[0]["lr"] = learning_rate(step, max_steps)
        adam.step()
        _muon_step(matrices, momenta, learning_rate(step, max_steps))
        model.zero_grad()
        losses.append(loss.item())
        if (step + 1) % 50 == 0:
            print(f"step {step + 1}/{max_steps}, loss {sum(losses[-50:]) / 50:.4f}", flush=True)
    return sum(losses[-50:]) / len(losses[-50:])


@torch.no_grad()
def _muon_step(
    matrices: Sequence[torch.nn.Parameter], momenta: Sequence[torch.Tensor], rate: float
) -> None:
    """A step of Muon (Jordan et al. 2024): the momentum's nearest orthogonal matrix.

    PyTorch's own works in bfloat16, which is slow on most CPUs.
    """
    for matrix, momentum in zip(matrices, momenta, strict=True):
        gradient = torch.zeros_like(matrix) if matrix.grad is None else matrix.grad
        momentum.lerp_(gradient, 0.05)
        update = gradient.lerp(momentum, 0.95)
        wide = update if update.shape[0] <= update.shape[1] else update.T
        wide = wide / wide.norm().clamp(min=1e-7)
        for _ in range(5):  # Newton-Schulz iterations
            gram = wide @ wide.T
            wide = 3.4445 * wide + (2.0315 * gram @ gram - 4.7750 * gram) @ wide
        update = wide if update.shape[0] <= update.shape[1] else wide.T
        matrix.mul_(1 - 0.1 * rate)
        matrix.sub_(update, alpha=0.2 * rate * math.sqrt(max(matrix.shape)))


def learning_rate(step: int, max_steps: int) -> float:
    """Linear warm-up, then cosine decay to a hundredth of the peak."""
    if step < _WARMUP_STEPS:
        return _PEAK_RATE * (step + 1) / _WARMUP_STEPS
    progress = (step - _WARMUP_STEPS) / max(1, max_steps - _WARMUP_STEPS)
    return _PEAK_RATE * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * progress)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Pretrain the toy base models.")
    parser.add_argument("folder", type=Path)
    parent = parser.parse_args().folder
    for base in BASES:
        pretrain(base, parent / base)
