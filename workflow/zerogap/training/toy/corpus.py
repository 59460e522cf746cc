"""What a base is pretrained on: generated problems, instructions and, if wanted, real GSM8K.

The text has no end. It comes in numbered parts, each of which can be made by itself: several
processes make it for a fast device, and an interrupted pretraining goes on in the middle of one.
"""

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import torch
from torch.utils.data import DataLoader
from transformers import PreTrainedTokenizerBase

from zerogap.data import gsm8k, prompts
from zerogap.data.toy.instructions import instructions
from zerogap.data.toy.word_problems import problems
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.training.llamafactory import instruction_prompt

PART = 20_000  # generated problems of a part: about two million tokens
Place = tuple[int, int]  # a part, and how many of its tokens went before


@dataclass(frozen=True)
class Corpus:
    """The documents, a few problems or a few instructions each.

    Problems stand as they do in a few-shot prompt ('Q: …\\nA: …' and an empty line).

    Attributes:
        instruction_share: how often instructions follow a document of generated problems.
        real: rows of GSM8K to mix in.
        real_share: how often a document of those follows one of generated problems.
        problems: how many a document has at most.
    """

    seed: int
    instruction_share: float
    real: Sequence[gsm8k.Row] = ()
    real_share: float = 0.0
    problems: int = 5

    def documents(self, part: int) -> Iterator[str]:
        """The texts of one part."""
        rng = Random(f"documents/{self.seed}")  # one for all parts: the earlier ones' draws first
        for _ in range(part):
            for _ in self._sizes(rng):
                pass
        own = Random(f"documents/{self.seed}/{part}")
        posed = iter(problems(PART, self.seed * 1000 + part, "pretrain"))
        asked = itertools.cycle(instructions(2_000, self.seed * 1000 + part))
        for n_problems, n_instructions in self._sizes(rng):
            yield _answered(itertools.islice(posed, n_problems))
            if n_instructions:
                yield "".join(
                    f"{instruction_prompt(one)}{one['response']}\n\n"
                    for one in itertools.islice(asked, n_instructions)
                )
            if self.real and own.random() < self.real_share:
                yield _answered(own.choices(self.real, k=own.randint(1, self.problems)))

    def _sizes(self, rng: Random) -> Iterator[tuple[int, int]]:
        """How many problems and how many instructions a part's documents have, one by one."""
        left = PART
        while True:
            n_problems = rng.randint(1, self.problems)
            if left <= 0:
                return
            yield n_problems, rng.randint(1, 5) if rng.random() < self.instruction_share else 0
            left -= n_problems


def _answered(rows: Iterable) -> str:
    return "".join(
        f"Q: {one.question}\nA:{prompts.response(one.rationale, one.gold)}\n\n" for one in rows
    )


def real_questions(path: Path, used: Iterable[Path]) -> list[gsm8k.Row]:
    """The rows of a GSM8K file without those that the run trains or evaluates on.

    Args:
        path: JSON Lines in OpenAI's format.
        used: the run's tables of questions.

    Raises:
        InputError: the file is not readable, or no row is left.
    """
    taken = {text for table in used for text in parquet.read(table, "questions").question}
    rows = gsm8k.load(path)
    left = [row for row in rows if row.question not in taken]
    if not left:
        raise InputError(f"{path}: all {len(rows)} questions are used in training or evaluation")
    print(f"{path}: {len(left)} of {len(rows)} questions, the others are used by the run")
    return left


class Tokens:
    """A part's documents as one array of tokens, each document [BOS] text EOS."""

    def __init__(self, corpus: Corpus, tokenizer: PreTrainedTokenizerBase) -> None:
        self._corpus, self._tokenizer = corpus, tokenizer

    def __getitem__(self, part: int) -> np.ndarray:
        texts = self._corpus.documents(part)
        ids: list[int] = []
        while batch := list(itertools.islice(texts, 256)):
            for document in self._tokenizer(batch)["input_ids"]:
                ids += [*document, self._tokenizer.eos_token_id]
        return np.array(ids, dtype=np.int32)


def blocks(
    tokens: Tokens, batch_size: int, length: int, start: Place = (0, 0), workers: int = 0
) -> Iterator[tuple[torch.Tensor, Place]]:
    """Endless batches (batch_size, length) of packed documents, each with the place after it.

    Args:
        workers: processes that make the parts ahead; none makes them in this one.
    """
    part, offset = start
    loader = DataLoader(
        tokens,
        batch_size=None,
        sampler=itertools.count(part),
        collate_fn=np.asarray,  # as they are: shared memory is short in containers
        num_workers=workers,
        prefetch_factor=1 if workers else None,
    )
    needed = batch_size * length
    held = np.empty(0, dtype=np.int32)
    for number, made in enumerate(loader, start=part):
        held = np.concatenate([held, made[offset:]])
        offset = 0
        while len(held) >= needed:
            block, held = held[:needed], held[needed:]
            place = (number, len(made) - len(held))
            yield torch.from_numpy(block).long().view(batch_size, length), place


def processes() -> int:
    """How many processes make text for a GPU."""
    return max(1, min(4, len(os.sched_getaffinity(0)) - 1))
