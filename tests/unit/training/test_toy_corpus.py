"""The corpus of a toy base: documents, GSM8K among them, parts, packing into blocks."""

import hashlib
import itertools
import json

import pandas as pd
import pytest
import torch

from zerogap.data.questions import Question
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.training.toy import corpus, tokenizers
from zerogap.training.toy.corpus import (
    Corpus,
    TokenisedCorpus,
    token_blocks,
    unused_questions,
)


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(corpus, "PROBLEMS_PER_PART", 40)


def test_the_seed_determines_the_documents_of_problems_and_instructions(small_parts) -> None:
    first, again, other = (list(Corpus(seed, 0.3).documents(0)) for seed in (1, 1, 2))
    assert first == again != other
    assert all(text.endswith("\n\n") for text in first)
    assert 0 < sum("The answer is" not in text for text in first) < len(first) / 2
    assert sum(text.count("The answer is") for text in first) == 40


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (Corpus(0, 0.12), "b5373f767ae6effad95f3534d26c781ea45d678be599d889d47725f66cb0cc2a"),
        (
            Corpus(0, 0.25, problems_per_document=4, language="varied"),
            "59363824c6351da38c4bc79468c629a02082f6ed9685e79bef144167bc0664b2",
        ),
    ],
    ids=["plain", "varied"],
)
def test_the_corpus_of_the_shipped_bases_never_changes(made, expected) -> None:
    """Their provenance states only seed and settings, so the same must give the same text."""
    texts = itertools.islice(made.documents(0), 50)
    assert hashlib.sha256("".join(texts).encode()).hexdigest() == expected


def test_a_document_has_at_most_problems_per_document(small_parts) -> None:
    texts = list(
        itertools.chain(
            *(Corpus(0, 0.0, problems_per_document=9).documents(part) for part in (0, 1))
        )
    )
    assert max(text.count("Q: ") for text in texts) == 9
    assert sum(text.count("Q: ") for text in texts) == 2 * 40


def test_parts_differ_and_do_not_depend_on_their_order(small_parts) -> None:
    made = Corpus(0, 0.3)
    later, earlier = list(made.documents(2)), list(made.documents(0))
    assert list(made.documents(2)) == later
    assert not set(later) & {text for text in earlier if "Q:" in text}


def test_gsm8k_documents_are_mixed_in_without_changing_the_others(small_parts) -> None:
    gsm8k = [Question(f"How many are {i}?", f"{i} it is.", str(i)) for i in range(30)]
    generated = list(Corpus(0, 0.1).documents(0))
    mixed = list(Corpus(0, 0.1, gsm8k, 0.5).documents(0))
    added = [text for text in mixed if "How many are" in text]
    assert [text for text in mixed if text not in added] == generated
    assert 0 < len(added) < len(generated)
    assert "Q: How many are 3?\nA: 3 it is. The answer is 3.\n\n" in "".join(mixed)


def test_questions_that_the_run_uses_are_left_out(tmp_path) -> None:
    path, used = tmp_path / "train.jsonl", tmp_path / "used.parquet"
    lines = [{"question": f"Which  {i}?", "answer": f"This.\n#### {i}"} for i in range(4)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    table = pd.DataFrame(
        {"question_id": ["x", "y", "z"], "question": ["Which 1?", "Which 2?", "Another?"]}
    )
    table = table.assign(rationale="", gold="1", leaked=False, paraphrase=None)
    parquet.write(used, table, "questions", {})
    assert [row.gold for row in unused_questions(path, [used])] == ["0", "3"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines[1:3]))
    with pytest.raises(InputError, match="all 2 questions are used"):
        unused_questions(path, [used])


@pytest.fixture(scope="module")
def tokenizer():
    texts = list(itertools.islice(Corpus(0, 0.1).documents(0), 200))
    return tokenizers.train(texts, "llama", 400, 256)


@pytest.mark.parametrize("workers", [0, 2])
def test_blocks_are_the_documents_in_order(small_parts, tokenizer, workers) -> None:
    made = Corpus(0, 0.1)
    texts = [text for part in range(3) for text in made.documents(part)]
    stream = [
        token for ids in tokenizer(texts)["input_ids"] for token in [*ids, tokenizer.eos_token_id]
    ]
    taken = itertools.islice(
        token_blocks(TokenisedCorpus(made, tokenizer), 2, 500, workers=workers), 8
    )
    assert torch.cat([block.flatten() for block, _ in taken]).tolist() == stream[:8000]


@pytest.mark.parametrize("size", [50, 5000])  # many per part; several parts each
def test_blocks_resume_from_any_position(small_parts, tokenizer, size) -> None:
    tokens = TokenisedCorpus(Corpus(0, 0.1), tokenizer)
    whole = list(itertools.islice(token_blocks(tokens, 2, size), 5))
    for number, (_, position) in enumerate(whole[:-1], start=1):
        block, after = next(token_blocks(tokens, 2, size, position))
        assert torch.equal(block, whole[number][0])
        assert after == whole[number][1]
