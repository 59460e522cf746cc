import numpy as np
import pytest
import torch

from helpers.tiny_models import model
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
from zerogap.strategies.neuron_localisation import (
    GreedyResponse,
    Models,
    NeuronGroup,
    causal_scores,
    comparative_scores,
    neuron_groups,
    recorded_activations,
    select_neurons,
)
from zerogap.strategies.shortcut import PatchedDecoder


def test_the_comparative_score_is_the_root_mean_square_difference_on_the_response():
    nets = model("llama", 1), model("llama", 2)
    responses = [GreedyResponse([1, 2], [3, 4, 5]), GreedyResponse([9], [8, 7])]
    layer = 1
    activations = []
    for net in nets:
        rows = []
        with recorded_activations(net) as recorded, torch.no_grad():
            for prompt, response in responses:
                net(torch.tensor([prompt + response]))
                rows.append(recorded[layer][0, len(prompt) :].clone())
        activations.append(torch.cat(rows))
    expected = ((activations[0] - activations[1]) ** 2).mean(0).sqrt()
    scores = comparative_scores(*nets, responses)
    assert len(scores) == 3
    np.testing.assert_allclose(scores[layer], expected.numpy())


def test_groups_cover_all_layers_but_the_last():
    assert neuron_groups([5, 5, 5], group_size=2) == [
        (0, 0, 2), (0, 2, 4), (0, 4, 5),
        (1, 0, 2), (1, 2, 4), (1, 4, 5),
    ]  # fmt: skip


def greedy_tokens(decoder):
    """The first greedy token of a fixed prompt, as a stand-in for accuracy."""
    decoder.prefill_prefix([1])
    return decoder.prefill_prompts([[2, 3]])[0].argmax().item() / 300


def test_the_causal_score_is_harm_plus_one_minus_collateral():
    """a(M_co) − a_patched(M_co) + 1 − (a(M_cl) − a_patched(M_cl)), from models patched by hand."""

    def decoder(seed):
        return SharedPromptDecoder(model("llama", seed))

    groups = neuron_groups([48, 48, 48], 24)
    models = Models(contaminated=decoder(1), clean=decoder(2), base=decoder(3))
    scores = dict(causal_scores(models, groups, greedy_tokens))
    assert list(scores) == groups
    for layer, start, stop in groups:
        patched = [
            greedy_tokens(
                PatchedDecoder(decoder(seed), decoder(3), {layer: torch.arange(start, stop)})
            )
            for seed in (1, 2)
        ]
        harm = greedy_tokens(decoder(1)) - patched[0]
        collateral = greedy_tokens(decoder(2)) - patched[1]
        assert scores[layer, start, stop] == pytest.approx(harm + 1 - collateral)
    assert len(set(scores.values())) > 1  # patches do change the decoded token


def test_groups_scored_in_shards_have_the_scores_of_the_whole():
    nets = [SharedPromptDecoder(model("llama", seed)) for seed in (1, 2, 3)]
    groups = neuron_groups([48, 48, 48], 24)
    whole = dict(causal_scores(Models(*nets), groups, greedy_tokens))
    shards = {}
    for start in range(2):
        shards |= dict(causal_scores(Models(*nets), groups[start::2], greedy_tokens))
    assert shards == whole


def test_the_neurons_with_the_largest_summed_scores_are_selected():
    """0.2 of 15 neurons are 3: the causal score picks the group, the comparative one the last."""
    causal = dict.fromkeys(neuron_groups([5, 5, 5], group_size=2), 1.0)
    causal[NeuronGroup(1, 2, 4)] = 1.5
    comparative = [np.arange(5) / 100, np.arange(5) / 100, np.ones(5)]
    table = select_neurons(comparative, causal, fraction=0.2)
    assert len(table) == 10
    selected = table[table.selected]
    assert list(zip(selected.layer, selected.neuron, strict=True)) == [(0, 4), (1, 2), (1, 3)]
