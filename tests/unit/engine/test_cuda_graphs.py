"""Recorded steps: what a GPU plays again, recorded here from the CPU's kernels."""

import contextlib
import dataclasses

import numpy as np
import pytest
import torch

from helpers.tiny_models import FAMILIES, model, tokenizer, traced
from zerogap.engine import prompt_cache
from zerogap.engine.cuda_graphs import CudaGraphs
from zerogap.engine.decoder import Capacity, Prompt, SamplingParams
from zerogap.engine.sampler import sample
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder

PREFIX, QUESTIONS = [5, 17, 200, 9], {0: [30, 31, 32], 1: [40], 2: [50, 51]}
CAPACITY = Capacity(
    max_rows=8, samples_per_prompt=4, max_new_tokens=20, max_prompts=2, max_prompt_len=3
)


class Recorder:
    """Counts what is recorded and what is played again."""

    def __init__(self, record=traced):
        self.record, self.recorded, self.played = record, 0, 0

    def __call__(self, once):
        play = self.record(once)
        self.recorded += 1

        def again():
            self.played += 1
            play()

        return again


def expected(alone, rows, prefix=PREFIX):
    with torch.no_grad():
        return torch.stack(
            [alone(torch.tensor([prefix + QUESTIONS[q] + own])).logits[0, -1] for q, own in rows]
        )


@pytest.mark.parametrize("family", FAMILIES)
def test_a_step_played_again_is_the_step_of_the_rows_that_are_there_then(family, monkeypatch):
    monkeypatch.setattr(prompt_cache, "_can_flash", lambda *_: True)
    recorder, alone = Recorder(), model(family)
    cached = SharedPromptDecoder(model(family), recorder=lambda: recorder)
    cached.reserve(CAPACITY)
    for prefix in (PREFIX, PREFIX[::-1]):  # another prefix in the place of the first
        cached.prefill_prefix(prefix)
        cached.prefill_prompts([QUESTIONS[0], QUESTIONS[1]])
        rows = [(0, []), (1, [])]
        for step in range(6):
            if step == 2:  # rows part and change places
                order = [1, 0, 0, 1]
            elif step == 3:  # a question leaves, another takes its slot
                order = [1, 2]
            else:
                order = list(range(len(rows)))
            cached.reorder(np.array(order))
            rows = [rows[i] for i in order]
            if step == 4:
                cached.prefill_prompts([QUESTIONS[2]])
                rows.append((2, []))
            tokens = [7 + 11 * step + 3 * row for row in range(len(rows))]
            rows = [(q, [*own, token]) for (q, own), token in zip(rows, tokens, strict=True)]
            torch.testing.assert_close(
                cached.step(torch.tensor(tokens)),
                expected(alone, rows, prefix),
                rtol=1e-9,
                atol=1e-9,
            )
    assert recorder.recorded == 1
    assert recorder.played == 10


TOKENIZER = tokenizer()
PROMPTS = [
    Prompt(f"q{i}", TOKENIZER(f"Shots first. Q: {i * 77}\nA:")["input_ids"]) for i in range(7)
]
SAMPLING = SamplingParams(
    temperature=0.7, max_new_tokens=40, stop=["Q:"], num_samples=5, seed=3, batch_size=11
)


def test_samples_are_the_same_with_and_without():
    recorder = Recorder()
    plain = dict(sample(SharedPromptDecoder(model("llama")), PROMPTS, TOKENIZER, SAMPLING))
    recorded = SharedPromptDecoder(model("llama"), recorder=lambda: recorder)
    assert dict(sample(recorded, PROMPTS, TOKENIZER, SAMPLING)) == plain
    assert recorder.played > 10 > recorder.recorded > 0
    before = recorder.recorded
    assert dict(sample(recorded, PROMPTS, TOKENIZER, SAMPLING)) == plain  # as the next part does
    assert recorder.recorded - before <= 2  # shapes that had come once


def test_exact_mode_pads_nothing():
    recorder = Recorder()
    exact = dataclasses.replace(SAMPLING, batch_invariant=True, max_new_tokens=4)
    list(
        sample(
            SharedPromptDecoder(model("llama"), recorder=lambda: recorder),
            PROMPTS[:2],
            TOKENIZER,
            exact,
        )
    )
    assert recorder.recorded == 0


def test_what_cannot_be_recorded_is_decoded_all_the_same(capsys):
    def refused(once):
        once()
        raise RuntimeError("operation not permitted when stream is capturing")

    plain = dict(sample(SharedPromptDecoder(model("llama")), PROMPTS, TOKENIZER, SAMPLING))
    recorder = Recorder(refused)
    unrecorded = SharedPromptDecoder(model("llama"), recorder=lambda: recorder)
    assert dict(sample(unrecorded, PROMPTS, TOKENIZER, SAMPLING)) == plain
    said = capsys.readouterr().err
    assert said.count("decoding steps are not recorded (RuntimeError: operation not perm") == 1
    assert recorder.played == 0


@pytest.mark.parametrize(
    "waits",
    [lambda x: x * int(x.sum()), lambda x: x * torch.tensor([1, 2, 3])],
    ids=["asks for a number", "sends numbers"],
)
def test_a_step_that_the_host_takes_part_in_cannot_be_recorded(waits):
    """What `traced` is there to notice."""
    numbers = torch.arange(3)
    with pytest.raises(RuntimeError):
        traced(lambda: waits(numbers))


@pytest.mark.parametrize("faithful", [True, False])
def test_a_graph_is_trusted_when_it_gives_the_bits_of_the_step(faithful, monkeypatch):
    """The bookkeeping around CUDA's calls, which are stood in for."""
    place = torch.zeros(3)

    class Graph:
        def replay(self):
            place.copy_(torch.tensor([1.0, 2.0, 3.0 if faithful else 3.5]))

    class Stream:
        def wait_stream(self, _):
            pass

    @contextlib.contextmanager
    def context(*_, **__):
        yield

    for name, stand_in in {
        "Stream": Stream, "current_stream": Stream, "CUDAGraph": Graph,
        "graph_pool_handle": lambda: (0, 1), "stream": context, "graph": context,
    }.items():  # fmt: skip
        monkeypatch.setattr(torch.cuda, name, stand_in)

    def once():
        return place.copy_(torch.tensor([1.0, 2.0, 3.0]))

    if faithful:
        CudaGraphs()(once)()
        assert place.tolist() == [1.0, 2.0, 3.0]
    else:
        with pytest.raises(RuntimeError, match="a replayed step gives other logits"):
            CudaGraphs()(once)
