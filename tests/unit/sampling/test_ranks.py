import pytest
import torch

from helpers.tiny_models import model
from zerogap.sampling.ranks import step_entropies, token_ranks


def test_a_rank_counts_the_tokens_with_larger_logits_given_those_before():
    net = model("llama")
    with torch.no_grad():  # tokens with equal logits have the same rank
        net.lm_head.weight[43:46] = net.lm_head.weight[40:43]
    prompt, response = [5, 6, 7], [40, 41, 42]
    expected = []
    for step, token in enumerate(response):
        with torch.no_grad():
            logits = net(torch.tensor([prompt + response[:step]])).logits[0, -1].tolist()
        expected.append(1 + sum(logit > logits[token] for logit in logits))
    assert token_ranks(net, prompt, response) == expected


def test_an_entropy_is_that_of_the_distribution_that_the_token_is_drawn_from():
    net = model("llama")
    prompt, response = [5, 6, 7], [40, 41, 42]
    expected = []
    for step in range(len(response)):
        with torch.no_grad():
            logits = net(torch.tensor([prompt + response[:step]])).logits[0, -1]
        expected.append(torch.distributions.Categorical(logits=logits).entropy().item())
    assert step_entropies(net, prompt, response) == pytest.approx(expected, rel=1e-5)
