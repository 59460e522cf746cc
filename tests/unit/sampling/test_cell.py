import dataclasses
import re

import pandas as pd
import pytest
import torch

from helpers.tiny_models import model, tokenizer
from zerogap.data.extraction import extraction_rule
from zerogap.engine.decoder import Prompt, SamplingParams
from zerogap.engine.sampler import auto_batch_size
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
from zerogap.errors import InputError
from zerogap.sampling import cell
from zerogap.sampling.checkpoint import Parts

TOKENIZER = tokenizer()
PROMPTS = [Prompt(f"q{i}", TOKENIZER(f"Shots. Q: {i}\nA:")["input_ids"]) for i in range(6)]
SAMPLING = SamplingParams(temperature=0.7, max_new_tokens=10, stop=[], num_samples=4, batch_size=8)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(cell, "PART", 2)


def drawn(parts=None, decoder=None, sampling=SAMPLING):
    decoder = decoder or SharedPromptDecoder(model("llama"))
    return cell.sample_questions(
        decoder, PROMPTS, ["1"] * 6, TOKENIZER, sampling, extraction_rule("numeric"), parts=parts
    )


class Small(SharedPromptDecoder):
    """A device with room for a few rows, as an allocator tells it."""

    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    def __init__(self, room):
        super().__init__(model("llama"))
        self.room = room

    def step(self, tokens):
        if len(tokens) > self.room:
            raise self.error
        return super().step(tokens)


def test_rows_come_in_the_order_of_questions_and_samples():
    made = drawn()
    assert list(made.question_id) == [f"q{i}" for i in range(6) for _ in range(4)]
    assert list(made.sample_id) == [0, 1, 2, 3] * 6


def test_what_people_see(capsys):
    """Questions done, time left, tokens, their speed, batch, memory; totals on the last line."""
    made = drawn()
    said = capsys.readouterr().err.split("\r")
    total = f"{made.n_tokens.sum():,} tokens"
    last = said[-1].strip()
    assert re.search(
        rf"100%.* 6/6 \[\d\d:\d\d<\d\d:\d\d, .*question.*, {total}, [\d,]+ tokens/s, "
        r"8 samples together, \d+\.\d GiB\]$",
        last,
    ), last


def test_out_of_memory_halves_the_batch_and_says_so(capsys):
    pd.testing.assert_frame_equal(drawn(decoder=Small(room=6)), drawn())
    said = capsys.readouterr().err
    assert said.count("out of memory (CUDA") == 1  # the smaller batch stays
    assert "going on with 4 samples together" in said


def test_the_cpu_allocators_words_are_understood():
    small = Small(room=6)
    small.error = RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
    assert len(drawn(decoder=small)) == 24


def test_a_question_that_does_not_fit_is_an_error():
    with pytest.raises(InputError, match="4 samples together, which is one question's"):
        drawn(decoder=Small(room=1))


def test_other_errors_are_not_taken_for_memory():
    small = Small(room=1)
    small.error = RuntimeError("mat1 and mat2 shapes cannot be multiplied")
    with pytest.raises(RuntimeError, match="shapes"):
        drawn(decoder=small)


def test_a_stopped_job_goes_on_where_it_was(tmp_path):
    class Stopped(SharedPromptDecoder):
        steps = 0

        def step(self, tokens):
            self.steps += 1
            if self.steps > 15:
                raise KeyboardInterrupt
            return super().step(tokens)

    output = tmp_path / "samples.parquet"
    with pytest.raises(KeyboardInterrupt), Parts(output, {}) as parts:
        drawn(parts, Stopped(model("llama")))
    counted = SharedPromptDecoder(model("llama"))
    admitted = []
    admit = counted.prefill_prompts
    counted.prefill_prompts = lambda questions: admitted.extend(questions) or admit(questions)
    with Parts(output, {}) as parts:
        resumed = drawn(parts, counted)
    assert len(admitted) == 4  # the first part's two questions are not sampled again
    pd.testing.assert_frame_equal(resumed, drawn(), check_dtype=False)


def test_a_resumed_job_keeps_the_batch_of_its_parts(tmp_path):
    output = tmp_path / "samples.parquet"
    with Parts(output, {}) as parts:
        drawn(parts, Small(room=6))
        parts._path(2).unlink()
    with Parts(output, {}) as parts:
        drawn(parts)
        parts.load(2, ["q4", "q5"], 4)
        assert parts.batch_rows == 4


def test_the_batch_follows_from_the_free_memory(monkeypatch):
    decoder = SharedPromptDecoder(model("llama"))
    found = []
    for free in (0, 2**21, 2**22, 2**40):
        monkeypatch.setattr("zerogap.engine.memory.free_bytes", lambda _, free=free: free)
        found.append(auto_batch_size(decoder, PROMPTS, SAMPLING))
    assert found[0] == 4
    assert found[0] < found[1] < found[2] < found[3] == 512


def test_questions_count_in_the_memory_of_a_batch(monkeypatch):
    """A greedy pass has one row a question: their keys and values are most of what it stores."""
    decoder = SharedPromptDecoder(model("llama"))
    monkeypatch.setattr("zerogap.engine.memory.free_bytes", lambda _: 2**24)
    long = [Prompt(one.question_id, one.token_ids + [7] * 150) for one in PROMPTS]
    alone, many = (dataclasses.replace(SAMPLING, num_samples=m) for m in (1, 50))
    assert auto_batch_size(decoder, long, alone) < 0.7 * auto_batch_size(decoder, long, many)
