import re
from dataclasses import replace

import pandas as pd
import pytest
import torch

from helpers.tiny_models import model, tokenizer
from zerogap.data.extraction import extraction_rule
from zerogap.engine.decoder import Prompt, SamplingParams
from zerogap.engine.sampler import auto_batch_size
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
from zerogap.io.resume import Journal
from zerogap.sampling import cell
from zerogap.sampling.responses import JobInputs

TOKENIZER = tokenizer()
PROMPTS = [Prompt(f"q{i}", TOKENIZER(f"Shots. Q: {i}\nA:")["input_ids"]) for i in range(6)]
INPUTS = JobInputs(
    TOKENIZER, pd.DataFrame({"gold": ["1"] * 6}), PROMPTS, [256], extraction_rule("numeric")
)
SAMPLING = SamplingParams(temperature=0.7, max_new_tokens=10, stop=[], num_samples=4, batch_size=8)


@pytest.fixture(autouse=True)
def chunks_of_two_questions(monkeypatch):
    monkeypatch.setattr(cell, "SAMPLES_PER_CHUNK", 2 * SAMPLING.num_samples)


def sample(journal=None, decoder=None, sampling=SAMPLING, indices=None):
    decoder = decoder or SharedPromptDecoder(model("llama"))
    sampler = cell.EngineSampler(decoder, INPUTS, sampling)
    return cell.sample_questions(sampler, journal=journal, indices=indices)


class SmallDevice(SharedPromptDecoder):
    """A device with room for few rows, which fails as an allocator does."""

    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    def __init__(self, max_rows):
        super().__init__(model("llama"))
        self.max_rows = max_rows

    def step(self, tokens):
        if len(tokens) > self.max_rows:
            raise self.error
        return super().step(tokens)


def test_the_responses_of_a_shard_are_those_of_the_whole():
    whole, shard = sample(), sample(indices=[1, 4])
    expected = whole[whole.question_id.isin(["q1", "q4"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(shard, expected)


def test_the_progress_bar_ends_with_the_totals(capsys):
    table = sample()
    last = capsys.readouterr().err.split("\r")[-1].strip()
    total = f"{table.n_tokens.sum():,} tokens"
    assert re.search(
        rf"100%.* 6/6 \[\d\d:\d\d<\d\d:\d\d, .*question.*, {total}, [\d,]+ tokens/s, "
        r"batch_size 8, \d+\.\d GiB\]$",
        last,
    ), last


def test_out_of_memory_halves_the_batch_size_once_and_logs_it(capsys):
    pd.testing.assert_frame_equal(sample(decoder=SmallDevice(max_rows=6)), sample())
    message = capsys.readouterr().err
    assert message.count("out of memory (CUDA") == 1  # later chunks keep the smaller batch size
    assert "continuing with batch_size 4" in message


class Interrupted(SharedPromptDecoder):
    num_steps = 0

    def step(self, tokens):
        self.num_steps += 1
        if self.num_steps > 15:
            raise KeyboardInterrupt
        return super().step(tokens)


def test_an_interrupted_job_resumes_after_its_last_finished_chunk(tmp_path):
    path = tmp_path / "parts.jsonl"
    with pytest.raises(KeyboardInterrupt):
        sample(Journal(path, {}), Interrupted(model("llama")))
    decoder = SharedPromptDecoder(model("llama"))
    prefilled = []
    prefill_prompts = decoder.prefill_prompts
    decoder.prefill_prompts = lambda questions: (
        prefilled.extend(questions) or prefill_prompts(questions)
    )
    resumed = sample(Journal(path, {}), decoder)
    assert len(prefilled) == 4  # the two questions of the first chunk are not sampled again
    pd.testing.assert_frame_equal(resumed, sample())


@pytest.mark.parametrize(
    ("first", "second"),
    [({"decoder": SmallDevice(6)}, {}), ({}, {"sampling": replace(SAMPLING, batch_size=4)})],
    ids=["that of the attempt before", "a smaller one that is configured"],
)
def test_a_resumed_job_takes_the_smaller_batch_size(tmp_path, capsys, first, second):
    path = tmp_path / "parts.jsonl"
    sample(Journal(path, {}), **first)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    capsys.readouterr()
    sample(Journal(path, {}), **second)
    assert re.findall(r"batch_size (\d+)", capsys.readouterr().err)[-1] == "4"


def test_chunks_of_other_questions_are_not_taken(tmp_path):
    path = tmp_path / "parts.jsonl"
    sample(Journal(path, {}), indices=[0, 1, 2, 3])
    pd.testing.assert_frame_equal(sample(Journal(path, {}), indices=[1, 2]), sample(indices=[1, 2]))


def test_the_automatic_batch_size_follows_from_the_free_memory(monkeypatch):
    decoder = SharedPromptDecoder(model("llama"))
    sizes = []
    for free in (0, 2**21, 2**22, 2**40):
        monkeypatch.setattr("zerogap.engine.memory.free_bytes", lambda _, free=free: free)
        sizes.append(auto_batch_size(decoder, PROMPTS, SAMPLING))
    assert sizes[0] == 4
    assert sizes[0] < sizes[1] < sizes[2] < sizes[3] == 512


def test_the_automatic_batch_size_counts_the_prompts_memory(monkeypatch):
    """A greedy pass has one row per question: prompts are most of what it stores."""
    decoder = SharedPromptDecoder(model("llama"))
    monkeypatch.setattr("zerogap.engine.memory.free_bytes", lambda _: 2**24)
    long = [Prompt(prompt.question_id, prompt.token_ids + [7] * 150) for prompt in PROMPTS]
    one, many = (replace(SAMPLING, num_samples=m) for m in (1, 50))
    assert auto_batch_size(decoder, long, one) < 0.7 * auto_batch_size(decoder, long, many)
