"""The decoder on the model's own cache: the reference, and the fallback for other architectures."""

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
def test_both_decoders_draw_the_same_samples(family):
    plain = dict(sample(HFDecoder(model(family)), PROMPTS, TOKENIZER, SAMPLING))
    shared = dict(sample(SharedPromptDecoder(model(family)), PROMPTS, TOKENIZER, SAMPLING))
    assert plain == shared


def test_tested_families_use_the_shared_prompt_decoder():
    assert isinstance(loading.decoder(model("gemma4")), SharedPromptDecoder)


def test_an_unknown_architecture_that_fits_uses_the_shared_prompt_decoder():
    decoder = loading.decoder(mistral())
    assert isinstance(decoder, SharedPromptDecoder)
    plain = dict(sample(HFDecoder(mistral()), PROMPTS, TOKENIZER, SAMPLING))
    assert dict(sample(decoder, PROMPTS, TOKENIZER, SAMPLING)) == plain


def test_an_architecture_that_does_not_fit_falls_back_with_a_warning(capsys):
    """The model's own attention is restored."""
    hf_model = gpt2()
    own_attention = hf_model.config._attn_implementation
    hf_model.transformer.forward = _without_extras(hf_model.transformer.forward)
    decoder = loading.decoder(hf_model)
    assert isinstance(decoder, HFDecoder)
    assert "gpt2: the shared prompt cache does not fit" in capsys.readouterr().err
    assert hf_model.config._attn_implementation == own_attention
    sampling = SamplingParams(temperature=0, max_new_tokens=8, stop=[])
    ours = greedy(decoder, PROMPTS, TOKENIZER, sampling)
    for prompt, response in zip(PROMPTS, ours, strict=True):
        ids = torch.tensor([prompt.token_ids])
        whole = gpt2().generate(ids, do_sample=False, max_new_tokens=8, pad_token_id=0)
        expected = whole[0, ids.shape[1] :].tolist()
        assert response.token_ids == expected[: len(response.token_ids)]


def _without_extras(forward):
    """An architecture that does not pass extra arguments on to its attention."""

    def plain_forward(*args, attention_pass=None, **kwargs):
        return forward(*args, **kwargs)

    return plain_forward
