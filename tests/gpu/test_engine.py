"""The engine on a GPU against the same computation on the CPU, in the exact architectures.

In float64 the two may only differ by an error. In bfloat16, where flash attention takes the prefix,
the GPU's logits must be as accurate as the model's own.
"""

import dataclasses

import pytest
import torch
from transformers import AutoModelForCausalLM, Gemma2Config, GptOssConfig

from helpers.decoding import rounding_errors
from helpers.tiny_models import ARCHITECTURES, FAMILIES, SIZES, model, tokenizer
from zerogap import LNEBlocking, RailCap
from zerogap.engine import loading, memory
from zerogap.engine.decoder import Capacity, Prompt, SamplingParams
from zerogap.engine.hf_decoder import HFDecoder
from zerogap.engine.patched_decoder import PatchedDecoder
from zerogap.engine.sampler import greedy, sample
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
from zerogap.strategies.base import Context

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

TOKENIZER = tokenizer()
TEXTS = ["Q: one\nA:", "Q: twenty-two of them\nA:", "Q: 3\nA:", "Q: four, at last\nA:", "Q: V\nA:"]
PROMPTS = [
    Prompt(f"q{i}", TOKENIZER("Shots first. " + text)["input_ids"]) for i, text in enumerate(TEXTS)
]
# 18 of 30 samples at once, so that questions enter while others are being decoded.
SAMPLING = SamplingParams(
    temperature=0.7, max_new_tokens=40, stop=["Q:"], num_samples=6, seed=3, batch_size=18
)
CAPACITY = Capacity(
    max_rows=8, samples_per_prompt=4, max_new_tokens=16, max_prompts=2, max_prompt_len=14
)
GREEDY = SamplingParams(temperature=0, max_new_tokens=40, stop=["Q:"])


def on_gpu(family, seed=0, dtype=torch.float64):
    return model(family, seed).to("cuda", dtype)


@pytest.mark.parametrize("family", ARCHITECTURES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_tested_architectures_are_decoded_by_the_shared_prompt_decoder(family, dtype, capsys):
    decoder = loading.decoder(on_gpu(family, dtype=dtype))
    assert isinstance(decoder, SharedPromptDecoder)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "config",
    [
        Gemma2Config(**SIZES, head_dim=8, sliding_window=8, attn_logit_softcapping=0.5),
        GptOssConfig(**SIZES, head_dim=8, sliding_window=8, num_local_experts=4),  # has sinks
    ],
    ids=["gemma2", "gpt_oss"],
)
def test_capped_scores_and_sinks_are_decoded_by_the_shared_prompt_decoder(config):
    net = AutoModelForCausalLM.from_config(config).to("cuda", torch.bfloat16)
    assert isinstance(loading.decoder(net), SharedPromptDecoder)


@pytest.mark.parametrize("family", ARCHITECTURES)
def test_samples_equal_those_of_a_cpu_and_their_steps_are_replayed(family, capsys):
    decoder = SharedPromptDecoder(on_gpu(family))
    drawn = dict(sample(decoder, PROMPTS, TOKENIZER, SAMPLING))
    assert drawn == dict(sample(HFDecoder(model(family)), PROMPTS, TOKENIZER, SAMPLING))
    assert decoder._graphs._captured
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("strategy", [RailCap(1), LNEBlocking(beta=50.0)])
def test_samples_under_a_strategy_equal_those_of_a_cpu(family, strategy):
    drawn = []
    for decoder in (SharedPromptDecoder(on_gpu(family)), SharedPromptDecoder(model(family))):
        responses = greedy(decoder, PROMPTS, TOKENIZER, GREEDY)
        context = Context([r.token_ids for r in responses], [r.entropy for r in responses])
        edit = strategy.prepare(context).edit_logits
        drawn.append(dict(sample(decoder, PROMPTS, TOKENIZER, SAMPLING, edit)))
    assert drawn[0] == drawn[1] != dict(sample(decoder, PROMPTS, TOKENIZER, SAMPLING))


@pytest.mark.parametrize("family", FAMILIES)
def test_batch_invariant_samples_have_the_same_bits_in_any_order(family):
    sampling = dataclasses.replace(SAMPLING, batch_invariant=True)
    decoder = SharedPromptDecoder(on_gpu(family, dtype=torch.bfloat16))
    some = dict(sample(decoder, PROMPTS, TOKENIZER, sampling, indices=[3, 1]))
    drawn = dict(sample(decoder, PROMPTS, TOKENIZER, sampling))
    assert some == {index: drawn[index] for index in (3, 1)}


@pytest.mark.parametrize("family", FAMILIES)
def test_bfloat16_logits_are_as_accurate_as_those_of_a_sequence_alone(family):
    """Replayed steps behind a prefix of which flash attention takes every layer that it can."""

    def reserved(net):
        decoder = SharedPromptDecoder(net)
        decoder.reserve(CAPACITY)
        return decoder

    errors, errors_alone = rounding_errors(family, torch.bfloat16, reserved, 20, "cuda")
    assert 0 < errors.std() < 1.5 * errors_alone.std()


def test_a_batch_that_does_not_fit_into_the_gpu_is_halved():
    total = torch.cuda.get_device_properties(0).total_memory

    def attempt(batch_size):
        return torch.empty(batch_size * total // 8, dtype=torch.uint8, device="cuda").nbytes

    messages = []
    _, batch_size = memory.within_memory(attempt, 16, on_retry=messages.append)
    assert batch_size == 4
    assert len(messages) == 2


@pytest.mark.parametrize("family", FAMILIES)
def test_captured_steps_of_two_models_compute_every_patch_in_turn(family):
    """Shortcut: a captured step of one model writes what one of the other reads."""
    nets = [on_gpu(family, seed) for seed in (1, 2)]
    patched = PatchedDecoder(
        SharedPromptDecoder(nets[0]), SharedPromptDecoder(nets[1], with_logits=False), {}
    )
    for neurons in ({1: torch.arange(10)}, {1: torch.arange(20, 30)}, {0: torch.arange(5)}):
        patched.patch(neurons)
        plain = PatchedDecoder(
            SharedPromptDecoder(model(family, 1)), SharedPromptDecoder(model(family, 2)), neurons
        )
        ours, expected = (
            dict(sample(decoder, PROMPTS, TOKENIZER, SAMPLING)) for decoder in (patched, plain)
        )
        assert ours == expected
        assert patched._patched._graphs._captured
        assert patched._base._graphs._captured
