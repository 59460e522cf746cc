import numpy as np
import pandas as pd
import torch

from helpers.tiny_models import model
from zerogap.engine.decoder import Prompt
from zerogap.engine.patched_decoder import recorded_activations
from zerogap.sampling.localisation import (
    NeuronGroup,
    comparative_scores,
    neuron_groups,
    score_neurons,
    select_neurons,
)


def test_the_comparative_score_is_the_root_mean_square_difference_on_the_response():
    nets = model("llama", 1), model("llama", 2)
    responses = {(1, 2): [3, 4, 5], (9,): [8, 7]}
    layer = 1
    activations = []
    for net in nets:
        rows = []
        with recorded_activations(net) as recorded, torch.no_grad():
            for prompt, response in responses.items():
                net(torch.tensor([[*prompt, *response]]))
                rows.append(recorded[layer][0, len(prompt) :].clone())
        activations.append(torch.cat(rows))
    expected = ((activations[0] - activations[1]) ** 2).mean(0).sqrt()
    prompts = [Prompt("", list(prompt)) for prompt in responses]
    scores = comparative_scores(*nets, prompts, list(responses.values()))
    assert len(scores) == 3
    np.testing.assert_allclose(scores[layer], expected.numpy())


def test_the_neurons_with_the_largest_summed_scores_are_selected():
    """0.2 of 15 neurons are 3: the causal score picks the group, the comparative one the last."""
    causal = dict.fromkeys(neuron_groups([5, 5, 5], group_size=2), 1.0)
    causal[NeuronGroup(1, 2, 4)] = 1.5
    comparative = [np.arange(5) / 100, np.arange(5) / 100, np.ones(5)]
    scored = score_neurons(comparative, causal)
    assert not scored.selected.any()
    table = select_neurons(scored, num_neurons=15, fraction=0.2)
    assert len(table) == 10
    selected = table[table.selected]
    assert list(zip(selected.layer, selected.neuron, strict=True)) == [(0, 4), (1, 2), (1, 3)]


def test_of_equal_neurons_those_of_the_first_layers_are_selected_in_any_order_of_the_groups():
    groups = neuron_groups([64, 64, 64], group_size=2)
    shards = [score_neurons([np.zeros(64)] * 3, dict.fromkeys(groups[k::2], 1.0)) for k in (1, 0)]
    table = select_neurons(pd.concat(shards), num_neurons=192, fraction=0.451)  # 86.6 neurons
    selected = table[table.selected]
    assert list(zip(selected.layer, selected.neuron, strict=True)) == [
        *((0, neuron) for neuron in range(64)),
        *((1, neuron) for neuron in range(23)),
    ]
