"""Neuron localisation, and what the diagnostics measure."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import OPTConfig, OPTForCausalLM

from helpers.tiny_models import model
from zerogap.engine.decoder import Prompt, Rows
from zerogap.engine.patched_decoder import recorded_activations
from zerogap.sampling.diagnostics import force_runner_up, forced_steps, step_entropies, token_ranks
from zerogap.sampling.localisation import (
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


def test_layers_without_a_dimension_of_sequences_are_read_by_token():
    """OPT's."""
    sizes = {"vocab_size": 300, "hidden_size": 32, "num_attention_heads": 4}
    config = OPTConfig(**sizes, ffn_dim=48, num_hidden_layers=2, word_embed_proj_dim=32)
    nets = [OPTForCausalLM(config).eval() for _ in range(2)]
    scores = comparative_scores(*nets, [Prompt("", [5, 6, 7])], [[8, 9]])
    assert [len(each) for each in scores] == [48, 48]


def test_of_equal_neurons_those_of_the_first_layers_are_selected_in_any_order_of_the_groups():
    groups = neuron_groups([64, 64, 64], group_size=2)
    shards = [score_neurons([np.zeros(64)] * 3, dict.fromkeys(groups[k::2], 1.0)) for k in (1, 0)]
    table = select_neurons(pd.concat(shards), num_neurons=192, fraction=0.451)  # 86.6 neurons
    selected = table[table.selected]
    assert list(zip(selected.layer, selected.neuron, strict=True)) == [
        *((0, neuron) for neuron in range(64)),
        *((1, neuron) for neuron in range(23)),
    ]


VOCABULARY = 5


def test_ranks_and_entropies_are_those_of_each_step_given_the_tokens_before():
    net = model("llama")
    with torch.no_grad():  # tokens with equal logits have the same rank
        net.lm_head.weight[43:46] = net.lm_head.weight[40:43]
    prompt, response = [5, 6, 7], [40, 41, 42]
    ranks, entropies = [], []
    for step, token in enumerate(response):
        with torch.no_grad():
            logits = net(torch.tensor([prompt + response[:step]])).logits[0, -1]
        ranks.append(1 + sum(logit > logits[token] for logit in logits).item())
        entropies.append(torch.distributions.Categorical(logits=logits).entropy().item())
    assert token_ranks(net, prompt, response) == ranks
    assert step_entropies(net, prompt, response) == pytest.approx(entropies, rel=1e-5)


def forced_token(trajectory, step, row_step, logits):
    """The only token that a row may take, or None if it may take any; literally."""
    if row_step > step:
        return None
    if row_step < step:
        return trajectory[row_step]
    others = [token for token in range(VOCABULARY) if token != trajectory[step]]
    return max(others, key=lambda token: logits[token])


tokens = st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=6)
distinct_logits = st.permutations([-2.0, -1.0, 0.5, 1.0, 3.0])


@settings(max_examples=200, deadline=None)
@given(
    prompts=st.lists(tokens.flatmap(
        lambda t: st.tuples(st.just(t), st.integers(0, len(t) - 1), st.integers(0, 7),
                            distinct_logits)), min_size=1, max_size=4)
)  # fmt: skip
def test_rows_follow_the_trajectory_take_the_runner_up_and_are_free_again(prompts):
    trajectories, steps, row_steps, logits = zip(*prompts, strict=True)
    edit_logits = force_runner_up(trajectories, steps)
    rows = Rows(torch.arange(len(prompts)), torch.tensor(row_steps), torch.empty(len(prompts), 0))
    edited = edit_logits(torch.tensor(logits), rows)
    for row, before, *prompt in zip(edited, logits, trajectories, steps, row_steps, strict=True):
        token = forced_token(*prompt, before)
        allowed = [token] if token is not None else list(range(VOCABULARY))
        assert row.isfinite().nonzero()[:, 0].tolist() == allowed
        if token is None:
            assert row.tolist() == list(before)


def test_steps_are_uniform_over_the_trajectory_and_belong_to_the_question():
    steps = forced_steps("a", length=5, num_samples=2000, seed=0)
    counts = torch.bincount(torch.tensor(steps), minlength=5)
    assert len(counts) == 5
    assert (counts > 320).all()  # 400 expected, standard deviation 18
    assert forced_steps("a", 5, 20, 0) == steps[:20]
    assert forced_steps("b", 5, 20, 0) != steps[:20]
    assert forced_steps("a", 5, 20, 1) != steps[:20]
