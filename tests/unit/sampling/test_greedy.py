import dataclasses

import pytest
import torch

from helpers.tiny_models import model, tokenizer
from zerogap.engine.decoder import Prompt, SamplingParams
from zerogap.engine.sampler import greedy
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
from zerogap.errors import InputError
from zerogap.sampling.greedy import decode_greedily

TOKENIZER = tokenizer()
PROMPTS = [Prompt(f"q{i}", TOKENIZER(f"Shots. Q: {i}\nA:")["input_ids"]) for i in range(6)]
SAMPLING = SamplingParams(temperature=0, max_new_tokens=10)


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


def test_greedy_decoding_continues_with_half_the_batch_size_when_memory_runs_out(capsys):
    responses, batch_size = decode_greedily(SmallDevice(2), PROMPTS, TOKENIZER, SAMPLING)
    expected = greedy(SharedPromptDecoder(model("llama")), PROMPTS, TOKENIZER, SAMPLING)
    assert [response.token_ids for response in responses] == [r.token_ids for r in expected]
    assert batch_size == 1  # 6, then 3, then 1
    message = capsys.readouterr().err
    assert message.count("out of memory (CUDA") == 2
    assert "continuing with batch_size 3" in message


def test_a_batch_is_never_larger_than_the_number_of_prompts():
    sampling = dataclasses.replace(SAMPLING, batch_size=500)
    decoder = SharedPromptDecoder(model("llama"))
    assert decode_greedily(decoder, PROMPTS, TOKENIZER, sampling)[1] == 6
    assert decode_greedily(decoder, PROMPTS, TOKENIZER, SAMPLING)[1] == 6


def test_a_prompt_that_does_not_fit_into_memory_is_an_error():
    with pytest.raises(InputError, match="out of memory with batch_size 1: use fewer new tokens"):
        decode_greedily(SmallDevice(0), PROMPTS, TOKENIZER, SAMPLING)


def test_other_errors_are_not_taken_for_out_of_memory():
    device = SmallDevice(1)
    device.error = RuntimeError("mat1 and mat2 shapes cannot be multiplied")
    with pytest.raises(RuntimeError, match="shapes"):
        decode_greedily(device, PROMPTS, TOKENIZER, SAMPLING)
