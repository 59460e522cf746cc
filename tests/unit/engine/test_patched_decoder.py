import contextlib

import numpy as np
import pytest
import torch

from helpers.tiny_models import ARCHITECTURES, FAMILIES, CountingCapture, model
from zerogap.engine.decoder import Capacity
from zerogap.engine.hf_decoder import HFDecoder
from zerogap.engine.patched_decoder import PatchedDecoder
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
from zerogap.families.structure import down_projections

PREFIX, QUESTIONS = [5, 6, 7, 8], [[9, 10], [11]]
WIDTH = 48  # neurons per layer of the tiny models
FORWARD_PASSES = 8  # of `decode`: prefix, prompts, six steps


def decode(decoder, steps=6):
    """Decode fixed tokens; the logits of every step."""
    decoder.prefill_prefix(PREFIX)
    logits = [decoder.prefill_prompts(QUESTIONS).repeat_interleave(2, 0)]
    decoder.reorder(np.array([0, 0, 1, 1]))
    for step in range(steps):
        tokens = torch.tensor([step, 40 + step, 80 + step, 120 + step])
        logits.append(decoder.step(tokens).clone())
    return torch.stack(logits)


def patch(contaminated, base, neurons):
    return PatchedDecoder(
        SharedPromptDecoder(contaminated), SharedPromptDecoder(base, with_logits=False), neurons
    )


@contextlib.contextmanager
def recorded_neurons(net, layer):
    """Record what the layer's down projection is given; a patched model is patched before."""
    neurons = []
    handle = down_projections(net)[layer].register_forward_pre_hook(
        lambda _, inputs: neurons.append(inputs[0].clone())
    )
    yield neurons
    handle.remove()


def neurons_of(decoder, layer):
    """The layer's neurons in every forward pass of `decode`."""
    with recorded_neurons(decoder.model, layer) as neurons:
        decode(decoder)
    assert len(neurons) == FORWARD_PASSES
    return neurons


@pytest.mark.parametrize("family", ARCHITECTURES)
def test_selected_neurons_are_the_base_models_at_every_position(family):
    layer = 1
    patched = patch(model(family, 1), model(family, 2), {layer: torch.arange(WIDTH)})
    expected = neurons_of(SharedPromptDecoder(model(family, 2)), layer)
    for ours, base in zip(neurons_of(patched, layer), expected, strict=True):
        torch.testing.assert_close(ours, base)
    unpatched = SharedPromptDecoder(model(family, 1))
    assert not torch.allclose(decode(patched), decode(unpatched))


@pytest.mark.parametrize("family", ARCHITECTURES)
def test_unselected_neurons_are_bit_for_bit_those_of_the_unpatched_model(family):
    """In the patched layer and below it; layers above it are given other inputs."""
    layer, selected = 1, torch.tensor([4, 17])
    unselected = torch.tensor([index for index in range(WIDTH) if index not in (4, 17)])
    patched = patch(model(family, 1), model(family, 2), {layer: selected})
    unpatched = SharedPromptDecoder(model(family, 1))
    for ours, own in zip(neurons_of(patched, layer), neurons_of(unpatched, layer), strict=True):
        assert torch.equal(ours[..., unselected], own[..., unselected])
        assert not torch.isclose(ours[..., selected], own[..., selected]).any()
    for ours, own in zip(neurons_of(patched, 0), neurons_of(unpatched, 0), strict=True):
        assert torch.equal(ours, own)


@pytest.mark.parametrize("family", ARCHITECTURES)
def test_the_base_model_is_computed_up_to_its_last_patched_layer(family):
    neurons = {0: torch.arange(10), 1: torch.arange(20)}
    complete = PatchedDecoder(  # with logits, which need all layers
        SharedPromptDecoder(model(family, 1)), SharedPromptDecoder(model(family, 2)), neurons
    )
    base = model(family, 2)
    with recorded_neurons(base, 1) as last, recorded_neurons(base, 2) as above:
        logits = decode(patch(model(family, 1), base, neurons))
    assert len(last) == FORWARD_PASSES
    assert not above
    assert torch.equal(logits, decode(complete))


CAPACITY = Capacity(
    max_rows=4, samples_per_prompt=2, max_new_tokens=8, max_prompts=2, max_prompt_len=2
)


@pytest.mark.parametrize("family", FAMILIES)
def test_captured_steps_compute_every_patch_in_turn(family):
    """Other neurons of the same layer use the captured steps, other layers and no patch do not."""
    capture = CountingCapture()
    decoders = [
        SharedPromptDecoder(
            model(family, seed), with_logits=seed == 1, make_capture=lambda: capture
        )
        for seed in (1, 2)
    ]
    patched = PatchedDecoder(*decoders, {1: torch.arange(10)})
    for neurons, new_captures in [
        ({1: torch.arange(10)}, 2),
        ({1: torch.arange(20, 30)}, 0),
        ({0: torch.arange(10), 1: torch.tensor([7])}, 2),
        ({0: torch.arange(5, 15), 1: torch.tensor([30])}, 0),
    ]:
        before = capture.captures
        patched.patch(neurons)
        patched.reserve(CAPACITY)
        expected = decode(patch(model(family, 1), model(family, 2), neurons))
        torch.testing.assert_close(decode(patched), expected)
        assert capture.captures - before == new_captures
    patched.release()
    decoders[0].reserve(CAPACITY)
    torch.testing.assert_close(decode(decoders[0]), decode(SharedPromptDecoder(model(family, 1))))


def test_decoders_with_and_without_a_shared_prompt_cache_are_patched_alike():
    logits = []
    for make in (SharedPromptDecoder, HFDecoder):
        neurons = {0: torch.arange(20), 2: torch.tensor([3, 40])}
        patched = PatchedDecoder(make(model("llama", 1)), make(model("llama", 3)), neurons)
        patched.prefill_prefix(PREFIX)
        steps = [patched.prefill_prompts([[8, 9]])]
        patched.reorder(np.array([0, 0]))
        steps += [patched.step(torch.tensor([token, 40])).clone() for token in (11, 12)]
        logits.append(torch.cat(steps))
    torch.testing.assert_close(*logits)
