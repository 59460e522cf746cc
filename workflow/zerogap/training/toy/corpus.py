"""The text that a toy base is pretrained on: generated problems, instructions, optionally GSM8K.

The text is endless. It comes in numbered parts, each of which can be generated on its own, so that
several processes can generate text for a fast device and an interrupted pretraining can resume in
the middle of a part.
"""

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset
from transformers import PreTrainedTokenizerBase

from zerogap.data import gsm8k_format
from zerogap.data.prompts import DEFAULT_TEMPLATE
from zerogap.data.questions import Question
from zerogap.data.toy.instructions import instructions
from zerogap.data.toy.word_problems import Problem, problems
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.training.examples import instruction_prompt

PROBLEMS_PER_PART = 20_000  # about two million tokens
_INSTRUCTIONS_PER_PART = 2_000  # repeated if a part needs more
Position = tuple[int, int]  # a part, and the number of its tokens that were already used


@dataclass(frozen=True)
class Corpus:
    r"""The documents, each of a few problems or a few instructions.

    Problems are written as in a few-shot prompt ('Q: …\nA: …' and an empty line).

    Attributes:
        instruction_fraction: probability that a document of instructions follows one of generated
            problems.
        gsm8k: questions of GSM8K to mix in.
        gsm8k_fraction: probability that a document of them follows one of generated problems.
        problems_per_document: maximum number of problems in a document.
        language: of problems and instructions, a key of
            :data:`~zerogap.data.toy.language.LANGUAGES`.
    """

    seed: int
    instruction_fraction: float
    gsm8k: Sequence[Question] = ()
    gsm8k_fraction: float = 0.0
    problems_per_document: int = 5
    language: str = "plain"

    def documents(self, part: int) -> Iterator[str]:
        """The texts of one part."""
        # One generator decides the sizes of all parts: the draws of earlier parts come first.
        sizes_rng = Random(f"documents/{self.seed}")
        for _ in range(part):
            for _ in self._sizes(sizes_rng):
                pass
        gsm8k_rng = Random(f"documents/{self.seed}/{part}")
        part_seed = self.seed * 1000 + part
        part_problems = iter(problems(PROBLEMS_PER_PART, part_seed, "pretrain", self.language))
        part_instructions = itertools.cycle(
            instructions(_INSTRUCTIONS_PER_PART, part_seed, self.language)
        )
        for num_problems, num_instructions in self._sizes(sizes_rng):
            yield _solved(itertools.islice(part_problems, num_problems))
            if num_instructions:
                yield "".join(
                    f"{instruction_prompt(row)}{row['response']}\n\n"
                    for row in itertools.islice(part_instructions, num_instructions)
                )
            if self.gsm8k and gsm8k_rng.random() < self.gsm8k_fraction:
                num_questions = gsm8k_rng.randint(1, self.problems_per_document)
                yield _solved(gsm8k_rng.choices(self.gsm8k, k=num_questions))

    def _sizes(self, rng: Random) -> Iterator[tuple[int, int]]:
        """Numbers of problems and of instructions in a part's documents."""
        remaining = PROBLEMS_PER_PART
        while True:
            num_problems = rng.randint(1, self.problems_per_document)
            if remaining <= 0:
                return
            has_instructions = rng.random() < self.instruction_fraction
            yield num_problems, rng.randint(1, 5) if has_instructions else 0
            remaining -= num_problems


def _solved(questions: Iterable[Question | Problem]) -> str:
    """Questions with their answers, as in a few-shot prompt."""
    return "".join(
        DEFAULT_TEMPLATE.prompt("", question.question)
        + DEFAULT_TEMPLATE.response(question.rationale, question.gold)
        + DEFAULT_TEMPLATE.separator
        for question in questions
    )


def unused_questions(path: Path, used: Iterable[Path]) -> list[Question]:
    """The questions of a GSM8K file that the run neither trains nor evaluates on.

    Args:
        path: JSON Lines in the GSM8K format.
        used: the run's tables of questions.

    Raises:
        InputError: the file is invalid, or no question is left.
    """
    used_texts = {text for table in used for text in parquet.read(table, "questions").question}
    questions = gsm8k_format.load(path)
    unused = [question for question in questions if question.question not in used_texts]
    if not unused:
        raise InputError(
            f"{path}: all {len(questions)} questions are used in training or evaluation; use a "
            "larger file, or set pretraining.gsm8k to null"
        )
    print(f"{path}: {len(unused)} of {len(questions)} questions; the run uses the others")
    return unused


class TokenisedCorpus(Dataset[NDArray[np.int32]]):
    """A part's documents as one array of token ids, each document as [BOS] text EOS."""

    def __init__(self, corpus: Corpus, tokenizer: PreTrainedTokenizerBase) -> None:
        self._corpus, self._tokenizer = corpus, tokenizer

    def __getitem__(self, part: int) -> NDArray[np.int32]:
        texts = self._corpus.documents(part)
        ids: list[int] = []
        while batch := list(itertools.islice(texts, 256)):
            for document in self._tokenizer(batch)["input_ids"]:
                ids += [*document, self._tokenizer.eos_token_id]
        return np.array(ids, dtype=np.int32)


def token_blocks(
    tokens: TokenisedCorpus,
    batch_size: int,
    length: int,
    start: Position = (0, 0),
    workers: int = 0,
) -> Iterator[tuple[torch.Tensor, Position]]:
    """Endless batches of packed documents.

    Args:
        tokens: the corpus.
        batch_size: rows of a batch.
        length: tokens per row.
        start: the position to begin at.
        workers: number of processes that generate parts ahead of time; 0: this process does it.

    Yields:
        Token ids (batch_size, length), and the position after them.
    """
    part, offset = start
    loader: DataLoader[Any] = DataLoader(
        tokens,
        batch_size=None,
        sampler=itertools.count(part),
        collate_fn=np.asarray,  # not torch tensors: shared memory is scarce in containers
        num_workers=workers,
        prefetch_factor=1 if workers else None,
    )
    needed = batch_size * length
    buffer = np.empty(0, dtype=np.int32)
    for number, part_tokens in enumerate(loader, start=part):
        buffer = np.concatenate([buffer, part_tokens[offset:]])
        offset = 0
        while len(buffer) >= needed:
            block, buffer = buffer[:needed], buffer[needed:]
            position = (number, len(part_tokens) - len(buffer))
            yield torch.from_numpy(block).long().view(batch_size, length), position


def num_workers() -> int:
    """Number of processes that generate text for a GPU."""
    return max(1, min(4, len(os.sched_getaffinity(0)) - 1))
