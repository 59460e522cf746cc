"""Captured steps: what a GPU would replay, captured here from the CPU's kernels."""

import contextlib
import dataclasses
import functools
import weakref

import numpy as np
import pytest
import torch

from helpers.decoding import whole_logits
from helpers.tiny_models import FAMILIES, CountingCapture, model, tokenizer
from zerogap.engine import loading
from zerogap.engine.decoder import Capacity, Prompt, SamplingParams
from zerogap.engine.kernels.cuda_graphs import CudaGraphCapture
from zerogap.engine.sampler import sample
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
from zerogap.engine.trial import Trial

PREFIX, QUESTIONS = [5, 17, 200, 9], [[30, 31, 32], [40], [50, 51]]
CAPACITY = Capacity(
    max_rows=8, samples_per_prompt=4, max_new_tokens=20, max_prompts=2, max_prompt_len=3
)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_replayed_step_computes_the_logits_of_the_current_rows(family):
    capture, reference = CountingCapture(), model(family)
    decoder = SharedPromptDecoder(model(family), make_capture=lambda: capture)
    decoder.reserve(CAPACITY)
    for prefix in (PREFIX, PREFIX[::-1]):  # the second replaces the first in place
        decoder.prefill_prefix(prefix)
        decoder.prefill_prompts([QUESTIONS[0], QUESTIONS[1]])
        rows = [(0, []), (1, [])]
        for step in range(6):
            if step == 2:  # rows split and move
                order = [1, 0, 0, 1]
            elif step == 3:  # a question leaves, another takes its slot
                order = [1, 2]
            else:
                order = list(range(len(rows)))
            decoder.reorder(np.array(order))
            rows = [rows[i] for i in order]
            if step == 4:
                decoder.prefill_prompts([QUESTIONS[2]])
                rows.append((2, []))
            tokens = [7 + 11 * step + 3 * row for row in range(len(rows))]
            rows = [(q, [*own, token]) for (q, own), token in zip(rows, tokens, strict=True)]
            torch.testing.assert_close(
                decoder.step(torch.tensor(tokens)),
                whole_logits(reference, prefix, QUESTIONS, rows),
                rtol=1e-9,
                atol=1e-9,
            )
    assert capture.captures == 1
    assert capture.replays == 10


TOKENIZER = tokenizer()
PROMPTS = [
    Prompt(f"q{i}", TOKENIZER(f"Shots first. Q: {i * 77}\nA:")["input_ids"]) for i in range(5)
]
SAMPLING = SamplingParams(
    temperature=0.7, max_new_tokens=16, stop=["Q:"], num_samples=4, seed=3, batch_size=9
)


def test_samples_are_the_same_with_and_without_capture():
    capture = CountingCapture()
    plain = dict(sample(SharedPromptDecoder(model("llama")), PROMPTS, TOKENIZER, SAMPLING))
    decoder = SharedPromptDecoder(model("llama"), make_capture=lambda: capture)
    assert dict(sample(decoder, PROMPTS, TOKENIZER, SAMPLING)) == plain
    assert capture.replays > 10 > capture.captures > 0
    before = capture.captures
    assert dict(sample(decoder, PROMPTS, TOKENIZER, SAMPLING)) == plain  # reuses the graphs
    assert capture.captures - before <= 2  # shapes that had occurred once


def test_the_trial_of_a_model_leaves_no_graphs_behind(monkeypatch):
    tried = []

    def captured(hf_model, **options):
        decoder = SharedPromptDecoder(hf_model, make_capture=CountingCapture, **options)
        tried.append(weakref.ref(decoder))
        return decoder

    monkeypatch.setattr(loading, "SharedPromptDecoder", captured)
    decoder = loading.decoder(model("llama"))
    assert [reference() for reference in tried] == [None, decoder]


def test_batch_invariant_decoding_captures_nothing():
    capture = CountingCapture()
    invariant = dataclasses.replace(SAMPLING, batch_invariant=True, max_new_tokens=4)
    decoder = SharedPromptDecoder(model("llama"), make_capture=lambda: capture)
    list(sample(decoder, PROMPTS[:2], TOKENIZER, invariant))
    assert capture.captures == 0


def test_a_failed_capture_falls_back_to_eager_decoding_with_one_warning(capsys):
    def refuse(step):
        step()
        raise RuntimeError("operation not permitted when stream is capturing")

    plain = dict(sample(SharedPromptDecoder(model("llama")), PROMPTS, TOKENIZER, SAMPLING))
    capture = CountingCapture(refuse)
    decoder = SharedPromptDecoder(model("llama"), make_capture=lambda: capture)
    assert dict(sample(decoder, PROMPTS, TOKENIZER, SAMPLING)) == plain
    warnings = capsys.readouterr().err
    assert warnings.count("CUDA graph capture failed (RuntimeError: operation not perm") == 1
    assert "falling back to eager decoding" in warnings
    assert capture.replays == 0


def test_memory_that_runs_out_during_a_capture_or_a_trial_is_not_a_refusal():
    def exhausted(step):
        raise torch.OutOfMemoryError

    make_decoder = functools.partial(SharedPromptDecoder, make_capture=lambda: exhausted)
    with pytest.raises(torch.OutOfMemoryError):
        list(sample(make_decoder(model("llama")), PROMPTS, TOKENIZER, SAMPLING))
    with pytest.raises(torch.OutOfMemoryError):
        Trial(model("llama"), 256).misfit(make_decoder)


def test_a_failed_capture_frees_its_tensors_before_the_step_runs_again():
    tensors, alive = [], []

    def refuse(step):
        intermediate = torch.zeros(3)
        tensors.append(weakref.ref(intermediate))
        raise RuntimeError("operation not permitted when stream is capturing")

    decoder = SharedPromptDecoder(model("llama"), make_capture=lambda: refuse)
    decoder.model.register_forward_pre_hook(
        lambda *_: alive.extend(tensor() is not None for tensor in tensors)
    )
    list(sample(decoder, PROMPTS, TOKENIZER, SAMPLING))
    assert tensors
    assert not any(alive)


@pytest.mark.parametrize("faithful", [True, False])
def test_a_graph_is_used_only_if_its_replay_gives_the_bits_of_the_step(faithful, monkeypatch):
    """The calls of CUDA are replaced by fakes."""
    device = torch.device("cuda:1")  # not the current one
    logits = torch.zeros(3)

    class Graph:
        def replay(self):
            logits.copy_(torch.tensor([1.0, 2.0, 3.0 if faithful else 3.000001]))

    class Stream:
        def __init__(self, of):
            self.device = of

        def wait_stream(self, other):
            assert other.device == self.device == device

    @contextlib.contextmanager
    def context(*_, **__):
        yield

    for name, fake in {
        "Stream": Stream, "current_stream": Stream, "CUDAGraph": Graph,
        "graph_pool_handle": lambda: (0, 1), "stream": context, "graph": context,
    }.items():  # fmt: skip
        monkeypatch.setattr(torch.cuda, name, fake)

    def step():
        return logits.copy_(torch.tensor([1.0, 2.0, 3.0]))

    if faithful:
        CudaGraphCapture(device)(step)()
        assert logits.tolist() == [1.0, 2.0, 3.0]
    else:
        with pytest.raises(RuntimeError, match="the replayed step gives other logits"):
            CudaGraphCapture(device)(step)
