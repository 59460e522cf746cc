import numpy as np
import pandas as pd
import pytest
import torch

from helpers.tiny_models import ARCHITECTURES, model, tokenizer
from zerogap.engine.decoder import Prompt, SamplingParams
from zerogap.engine.sampler import sample
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
from zerogap.io import parquet
from zerogap.strategies import shortcut

PREFIX, QUESTION = [5, 6, 7, 8], [9, 10]
WIDTH = 48  # of the tiny models' feed-forward blocks


def decode(decoder, steps=6):
    """Logits of some fixed steps."""
    decoder.prefill_prefix(PREFIX)
    logits = [decoder.prefill_prompts([QUESTION, [11]]).repeat_interleave(2, 0)]
    decoder.reorder(np.array([0, 0, 1, 1]))
    for step in range(steps):
        logits.append(decoder.step(torch.tensor([step, 40 + step, 80 + step, 120 + step])))
    return torch.stack(logits)


def patched(contaminated, donor, neurons):
    return shortcut.PatchedModel(
        SharedPromptDecoder(contaminated), SharedPromptDecoder(donor, with_logits=False), neurons
    )


@pytest.mark.parametrize("family", ARCHITECTURES)
def test_neurons_are_of_the_text_models_layers(family):
    made = model(family)
    found = shortcut.down_projections(made)
    assert len(found) == made.config.get_text_config().num_hidden_layers
    assert {module.in_features for module in found} == {WIDTH}


@pytest.mark.parametrize("family", ARCHITECTURES)
def test_a_model_that_lends_to_itself_is_unchanged(family):
    neurons = {0: torch.arange(10), 2: torch.tensor([3, 40])}
    alone = decode(SharedPromptDecoder(model(family)))
    with_itself = decode(patched(model(family), model(family), neurons))
    torch.testing.assert_close(with_itself, alone)


@pytest.mark.parametrize("family", ARCHITECTURES)
def test_the_selected_neurons_are_the_donors_at_every_position(family):
    """With every neuron of a layer borrowed, the donor's activations stand there throughout."""
    ours, theirs = model(family, seed=1), model(family, seed=2)
    layer = 1
    everything = {layer: torch.arange(WIDTH)}
    decoder = patched(ours, theirs, everything)
    seen = []
    # Registered after the patch: it sees what the down projection is really given.
    shortcut.down_projections(ours)[layer].register_forward_pre_hook(
        lambda _, inputs: seen.append(inputs[0].clone())
    )
    changed = decode(decoder)

    donor = SharedPromptDecoder(model(family, seed=2))
    expected = []
    shortcut.down_projections(donor.model)[layer].register_forward_pre_hook(
        lambda _, inputs: expected.append(inputs[0].clone())
    )
    decode(donor)
    assert len(seen) == len(expected) == 8
    for one, other in zip(seen, expected, strict=True):
        torch.testing.assert_close(one, other)
    assert not torch.allclose(changed, decode(SharedPromptDecoder(model(family, seed=1))))


def test_unselected_neurons_are_the_models_own():
    ours, theirs = model("llama", seed=1), model("llama", seed=2)
    patched(ours, theirs, {0: torch.tensor([4])}).prefill_prefix(PREFIX)
    with shortcut.recorded_neurons(model("llama", seed=1)) as before:
        pass
    assert len(before) == 3


def test_release_takes_the_patch_off():
    ours = model("llama", seed=1)
    decoder = patched(ours, model("llama", seed=2), {0: torch.arange(48)})
    decoder.release()
    torch.testing.assert_close(
        decode(SharedPromptDecoder(ours)), decode(SharedPromptDecoder(model("llama", seed=1)))
    )


def test_it_samples_through_the_same_loop():
    words = tokenizer()
    prompts = [Prompt(str(i), words(f"Shots. Q: {i}\nA:")["input_ids"]) for i in range(3)]
    decoder = patched(model("llama", 1), model("llama", 2), {0: torch.arange(20)})
    sampling = SamplingParams(
        temperature=0.7, max_new_tokens=8, stop=[], num_samples=4, batch_size=5
    )
    drawn = dict(sample(decoder, prompts, words, sampling))
    assert sorted(drawn) == [0, 1, 2]
    assert all(len(responses) == 4 for responses in drawn.values())


def test_comparative_score_is_the_root_mean_square_difference():
    a, b = model("llama", 1), model("llama", 2)
    texts = [([1, 2, 3, 4, 5], 2), ([9, 8, 7], 1)]
    scores = shortcut.comparative_scores(a, b, texts)
    with shortcut.recorded_neurons(a) as ours, torch.no_grad():
        first = [a(torch.tensor([ids])) and ours[1][0, start:].clone() for ids, start in texts]
    with shortcut.recorded_neurons(b) as theirs, torch.no_grad():
        second = [b(torch.tensor([ids])) and theirs[1][0, start:].clone() for ids, start in texts]
    difference = torch.cat(first) - torch.cat(second)
    np.testing.assert_allclose(scores[1], (difference**2).mean(0).sqrt().numpy())


def test_selection():
    """Groups tile all layers but the last; the best neurons by the summed score are selected."""
    parts = shortcut.groups([5, 5, 5], group_size=2)
    assert parts == [
        (0, range(0, 2)), (0, range(2, 4)), (0, range(4, 5)),
        (1, range(0, 2)), (1, range(2, 4)), (1, range(4, 5)),
    ]  # fmt: skip
    accuracy = {("contaminated", None): 0.9, ("clean", None): 0.4}

    def solved(which, neurons):
        if neurons is None:
            return accuracy[which, None]
        layer, indices = next(iter(neurons.items()))
        hit = layer == 1 and 2 in indices.tolist()
        return accuracy[which, None] - (0.5 if hit and which == "contaminated" else 0.0)

    causal = shortcut.causal_scores(solved, parts)
    assert causal == pytest.approx([1, 1, 1, 1, 1.5, 1])
    comparative = [np.arange(5) / 100, np.arange(5) / 100, np.ones(5)]
    table = shortcut.select(comparative, parts, causal, share=0.2)
    chosen = table[table.selected]
    assert list(zip(chosen.layer, chosen.neuron, strict=True)) == [(0, 4), (1, 2), (1, 3)][-3:]


def test_the_file_gives_back_the_selection(tmp_path):
    table = pd.DataFrame(
        {
            "layer": [0, 0, 1], "neuron": [3, 4, 7], "comparative": 0.1, "causal": 1.0,
            "score": 1.1, "selected": [True, False, True],
        }
    )  # fmt: skip
    parquet.write(tmp_path / "neurons.parquet", table, "neurons", {})
    chosen = shortcut.selected_neurons(tmp_path / "neurons.parquet")
    assert {layer: indices.tolist() for layer, indices in chosen.items()} == {0: [3], 1: [7]}
