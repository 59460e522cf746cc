"""The plain path: the reference beside the shared prompt cache, and the way for other models."""

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, MistralConfig, MistralForCausalLM

from helpers.tiny_models import FAMILIES, VOCABULARY, model, tokenizer
from zerogap.engine import loading
from zerogap.engine.decoder import Prompt, SamplingParams
from zerogap.engine.hf_decoder import HFDecoder
from zerogap.engine.sampler import greedy, sample
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder

TOKENIZER = tokenizer()
PROMPTS = [
    Prompt(str(i), TOKENIZER("Shots first. " + text)["input_ids"])
    for i, text in enumerate(["Q: one\nA:", "Q: twenty-two of them\nA:", "Q: 3\nA:"])
]
SAMPLING = SamplingParams(temperature=0.7, max_new_tokens=12, stop=[], num_samples=5, batch_size=64)


def mistral():
    torch.manual_seed(0)
    return MistralForCausalLM(
        MistralConfig(
            vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, sliding_window=8,
        )
    ).double()  # fmt: skip


def gpt2():
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=256)
    return GPT2LMHeadModel(config).double().eval()


@pytest.mark.parametrize("family", FAMILIES)
def test_both_ways_draw_the_same(family):
    plain = dict(sample(HFDecoder(model(family)), PROMPTS, TOKENIZER, SAMPLING))
    shared = dict(sample(SharedPromptDecoder(model(family)), PROMPTS, TOKENIZER, SAMPLING))
    assert plain == shared


def test_known_families_share_the_prompt():
    assert isinstance(loading.decoder(model("gemma4")), SharedPromptDecoder)


def test_an_unknown_architecture_that_fits_is_shared():
    decoder = loading.decoder(mistral())
    assert isinstance(decoder, SharedPromptDecoder)
    plain = dict(sample(HFDecoder(mistral()), PROMPTS, TOKENIZER, SAMPLING))
    assert dict(sample(decoder, PROMPTS, TOKENIZER, SAMPLING)) == plain


def test_one_that_does_not_fit_falls_back_and_says_so(capsys):
    """GPT-2 scales and masks in its own way; its own attention is put back."""
    broken = gpt2()
    handed = broken.config._attn_implementation
    broken.transformer.forward = _without_extras(broken.transformer.forward)
    decoder = loading.decoder(broken)
    assert isinstance(decoder, HFDecoder)
    assert "gpt2: the shared prompt cache does not fit" in capsys.readouterr().err
    assert broken.config._attn_implementation == handed
    sampling = SamplingParams(temperature=0, max_new_tokens=8, stop=[])
    ours = greedy(decoder, PROMPTS, TOKENIZER, sampling)
    for prompt, response in zip(PROMPTS, ours, strict=True):
        ids = torch.tensor([prompt.token_ids])
        whole = gpt2().generate(ids, do_sample=False, max_new_tokens=8, pad_token_id=0)
        expected = whole[0, ids.shape[1] :].tolist()
        assert response.token_ids == expected[: len(response.token_ids)]


def _without_extras(forward):
    """As an architecture that hands nothing on to its attention."""

    def plain_forward(*args, prompt_cache=None, **kwargs):
        return forward(*args, **kwargs)

    return plain_forward
