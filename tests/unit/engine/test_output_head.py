import pytest
import torch
from transformers import (
    CohereConfig,
    CohereForCausalLM,
    GraniteConfig,
    GraniteForCausalLM,
    PreTrainedModel,
)

from helpers.tiny_models import SIZES, VOCABULARY, model, tokenizer
from zerogap.engine import output_head, sampler
from zerogap.engine.decoder import Prompt, SamplingParams
from zerogap.engine.output_head import float32_logits
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
from zerogap.sampling.diagnostics import token_ranks

# What each architecture does to the output of its head.
MODELS = {
    "llama": (lambda: model("llama"), lambda logits: logits),
    "gpt_neox": (lambda: model("gpt_neox"), lambda logits: logits),
    "gemma4": (
        lambda: model("gemma4", final_logit_softcapping=30.0),
        lambda logits: 30 * torch.tanh(logits / 30),
    ),
    "cohere": (
        lambda: CohereForCausalLM(CohereConfig(**SIZES, logit_scale=0.25)),
        lambda logits: 0.25 * logits,
    ),
    "granite": (
        lambda: GraniteForCausalLM(GraniteConfig(**SIZES, logits_scaling=8.0)),
        lambda logits: logits / 8,
    ),
}
IDS = torch.arange(5, 45)[None]


def bfloat16_model(name: str) -> PreTrainedModel:
    """The model in bfloat16, its largest logits near 20, where the spacing is 0.125."""
    torch.manual_seed(0)
    net = MODELS[name][0]().bfloat16().eval()
    with torch.no_grad():
        largest = net.get_output_embeddings()(hidden_states(net)).amax()
        net.get_output_embeddings().weight.mul_(20 / largest)
    return net


@torch.no_grad()
def hidden_states(net: PreTrainedModel) -> torch.Tensor:
    return net.get_decoder()(IDS).last_hidden_state


def expected_logits(net: PreTrainedModel, name: str) -> torch.Tensor:
    head = net.get_output_embeddings().weight.detach().float()
    return MODELS[name][1](hidden_states(net).float() @ head.T)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("block", [8192, 7])
def test_logits_are_what_the_model_makes_of_a_float32_head(name, block, monkeypatch):
    monkeypatch.setattr(output_head, "VOCABULARY_BLOCK", block)
    net = bfloat16_model(name)
    with torch.no_grad(), float32_logits(net):
        logits = net(IDS).logits
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits, expected_logits(net, name), rtol=1e-5, atol=1e-4)
    with torch.no_grad():
        assert net(IDS).logits.dtype == torch.bfloat16  # as before


def test_a_bias_of_the_head_is_added():
    net = bfloat16_model("llama")
    net.lm_head.bias = torch.nn.Parameter(torch.randn(VOCABULARY).bfloat16())
    with torch.no_grad(), float32_logits(net):
        logits = net(IDS).logits
    expected = expected_logits(net, "llama") + net.lm_head.bias.float()
    torch.testing.assert_close(logits, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_bfloat16_ranks_of_near_ties_are_those_of_a_float32_head(name):
    """Along a response of twentieth-best tokens, which often tie with better ones in bfloat16."""
    net, prompt = bfloat16_model(name), IDS[0, :5].tolist()
    tokens = list(prompt)
    for _ in range(40):
        with torch.no_grad(), float32_logits(net):
            tokens.append(int(net(torch.tensor([tokens])).logits[0, -1].topk(20).indices[19]))
    with torch.no_grad():
        hidden = net.get_decoder()(torch.tensor([tokens])).last_hidden_state[0, 4:-1]
        head = net.get_output_embeddings().weight
        exact, coarse = hidden.float() @ head.float().T, hidden @ head.T
    ranks, coarse_ranks = (
        [
            1 + sum(logit > row[token] for logit in row)
            for row, token in zip(logits.tolist(), tokens[5:], strict=True)
        ]
        for logits in (exact, coarse)
    )
    assert coarse_ranks != ranks  # near-ties do occur
    assert token_ranks(net, prompt, tokens[5:]) == ranks


@pytest.mark.parametrize("name", ["llama", "gpt_neox", "gemma4"])
def test_greedy_tokens_and_entropies_of_a_bfloat16_model_come_from_float32_logits(
    name, monkeypatch
):
    net, words, logits = bfloat16_model(name), tokenizer(), []
    entropy = sampler.entropy
    monkeypatch.setattr(sampler, "entropy", lambda rows: logits.append(rows) or entropy(rows))
    sampling = SamplingParams(temperature=0, max_new_tokens=6)
    prompt = Prompt("a", IDS[0].tolist())
    response = sampler.greedy(SharedPromptDecoder(net), [prompt], words, sampling)[0]
    assert {rows.dtype for rows in logits} == {torch.float32}
    probabilities = torch.cat(logits).double().softmax(-1)
    expected = -(probabilities * probabilities.log()).sum(-1)
    assert response.token_ids == probabilities.argmax(-1).tolist()
    assert response.entropy == pytest.approx(expected.tolist(), rel=1e-3)
    if name == "gemma4":
        assert torch.cat(logits).abs().amax() <= 30  # the model's soft cap


def test_within_such_a_block_another_one_changes_nothing():
    net = bfloat16_model("llama")
    with torch.no_grad(), float32_logits(net) as changes, float32_logits(net) as changes_again:
        assert changes
        assert not changes_again
        torch.testing.assert_close(
            net(IDS).logits, expected_logits(net, "llama"), rtol=1e-5, atol=1e-4
        )


def test_steps_after_greedy_decoding_have_the_models_own_logits():
    net, words = bfloat16_model("llama"), tokenizer()
    decoder = SharedPromptDecoder(net)
    sampling = SamplingParams(temperature=0, max_new_tokens=2)
    sampler.greedy(decoder, [Prompt("a", [5, 6, 7])], words, sampling)
    decoder.prefill_prefix([5, 6])
    assert decoder.prefill_prompts([[7]]).dtype == torch.bfloat16
