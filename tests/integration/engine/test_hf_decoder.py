"""Which decoder a model gets, and that each draws what passes over whole sequences would."""

import peft
import pytest
import torch
import transformers as t

from helpers.tiny_models import SIZES, VOCABULARY, enlarge_weights, model, tokenizer
from zerogap.engine import loading
from zerogap.engine.decoder import Prompt, SamplingParams
from zerogap.engine.hf_decoder import HFDecoder
from zerogap.engine.sampler import sample
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
from zerogap.engine.trial import InFloat32, Trial

TOKENIZER = tokenizer()
PROMPTS = [
    Prompt(str(i), TOKENIZER("Shots first. " + text)["input_ids"])
    for i, text in enumerate(["Q: one\nA:", "Q: twenty-two of them\nA:", "Q: 3\nA:"])
]
SAMPLING = SamplingParams(temperature=0.7, max_new_tokens=12, stop=[], num_samples=5, batch_size=64)

SHARED, OWN_CACHE, NO_CACHE = SharedPromptDecoder, "own cache", "no cache"
OLD_SIZES = {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256}
STATE_SPACE = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8}
DELTA_RULE = {
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}  # fmt: skip
HEADS_OF_8 = SIZES | {"head_dim": 8}
MIXED_WINDOWS = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 8}
MIXED_LINEAR = {"layer_types": ["linear_attention", "full_attention"]}
# model type → values of its configuration, and the decoder that it gets
ARCHITECTURES = {
    "llama": (SIZES, SHARED),
    "gpt_neox": (SIZES | {"rotary_pct": 0.25}, SHARED),
    "mistral": (SIZES | {"sliding_window": 8}, SHARED),
    "gpt2": (OLD_SIZES, SHARED),
    "gemma2": (HEADS_OF_8 | {"sliding_window": 8, "attn_logit_softcapping": 0.5}, SHARED),
    "gemma4_text": (  # as the 31B model: heads of sliding and global layers differ in number
        HEADS_OF_8
        | MIXED_WINDOWS
        | {"num_global_key_value_heads": 1, "attention_k_eq_v": True, "global_head_dim": 16}
        | {"num_kv_shared_layers": 0, "hidden_size_per_layer_input": 0},
        SHARED,
    ),
    "granitemoeshared": (SIZES | {"num_local_experts": 4, "shared_intermediate_size": 16}, SHARED),
    "deepseek_v3": (  # values are smaller than keys
        SIZES
        | {"num_key_value_heads": 4, "q_lora_rank": 8, "kv_lora_rank": 8, "qk_nope_head_dim": 8}
        | {"qk_rope_head_dim": 8, "v_head_dim": 8, "n_routed_experts": 4, "n_group": 1}
        | {"topk_group": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
        | {"first_k_dense_replace": 1},
        SHARED,
    ),
    "got_ocr2": (  # passes its options on to the text decoder
        {"text_config": SIZES | {}, "vision_config": {"hidden_size": 16, "num_hidden_layers": 1}},
        SHARED,
    ),
    "gpt_oss": (HEADS_OF_8 | MIXED_WINDOWS | {"num_local_experts": 4}, SHARED),  # sinks
    "bloom": ({"vocab_size": VOCABULARY, "hidden_size": 32, "n_layer": 2, "n_head": 4}, OWN_CACHE),
    "qwen3_5_text": (HEADS_OF_8 | MIXED_LINEAR | DELTA_RULE, OWN_CACHE),
    "lfm2": (SIZES | {"layer_types": ["conv", "full_attention"]}, OWN_CACHE),
    "falcon_h1": (
        HEADS_OF_8 | {"mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 8},
        OWN_CACHE,
    ),
    "bamba": (  # begins at position 0 unless it is told where
        SIZES
        | {"attn_layer_indices": [1], "mamba_n_heads": 8, "mamba_d_head": 8}
        | {"mamba_d_state": 8},
        OWN_CACHE,
    ),
    "doge": (SIZES, OWN_CACHE),  # a mask of its own
    "llama4_text": (  # attention in chunks
        HEADS_OF_8
        | {"num_hidden_layers": 4, "attention_chunk_size": 32, "intermediate_size_mlp": 48}
        | {"num_local_experts": 2, "moe_layers": []},
        OWN_CACHE,
    ),
    "mamba": (STATE_SPACE, OWN_CACHE),
    "openai-gpt": (OLD_SIZES, NO_CACHE),
    "rwkv": ({"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2}, NO_CACHE),
    "recurrent_gemma": (
        HEADS_OF_8 | {"lru_width": 32, "attention_window_size": 8, "num_hidden_layers": 3},
        NO_CACHE,
    ),
}


def built(name):
    """A model of an architecture with random weights, in the precision that it computes in."""
    torch.manual_seed(0)
    config = t.AutoConfig.for_model(name, **ARCHITECTURES[name][0])
    return enlarge_weights(t.AutoModelForCausalLM.from_config(config).eval())


def kind(decoder):
    if isinstance(decoder, SharedPromptDecoder):
        return SHARED
    return OWN_CACHE if decoder.cached else NO_CACHE


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_architecture_draws_what_passes_over_whole_sequences_would(name, capsys):
    decoder = loading.decoder(built(name))
    assert kind(decoder) == ARCHITECTURES[name][1]
    message = capsys.readouterr().err
    assert message.count("\n") == (kind(decoder) != SHARED)
    assert ("falling back to the model's own cache" in message) == (kind(decoder) == OWN_CACHE)
    assert ("whole sequence for every token" in message) == (kind(decoder) == NO_CACHE)
    drawn = dict(sample(decoder, PROMPTS, TOKENIZER, SAMPLING))
    whole = built(name)
    whole.set_attn_implementation("eager")  # the one that implements everything
    expected = dict(sample(HFDecoder(whole, cached=False), PROMPTS, TOKENIZER, SAMPLING))
    assert drawn == expected


def test_weights_that_a_first_pass_scales_are_scaled_once():
    """RWKV does so in place, and the trial computes with copies in float32."""
    config = t.AutoConfig.for_model("rwkv", **ARCHITECTURES["rwkv"][0], rescale_every=1)
    torch.manual_seed(0)
    used = t.AutoModelForCausalLM.from_config(config).bfloat16().eval()
    fresh = t.AutoModelForCausalLM.from_config(config).bfloat16().eval()
    fresh.load_state_dict(used.state_dict())
    loading.decoder(used)
    ids = torch.arange(20)[None]
    with torch.inference_mode():
        assert torch.equal(used(ids).logits, fresh(ids).logits)


@pytest.mark.parametrize(("window", "length"), [(8, 21), (200, 213), (250, 256), (300, 21)])
def test_a_trial_is_longer_than_a_window_that_can_hide_something(window, length):
    config = t.AutoConfig.for_model("mistral", **SIZES, sliding_window=window)
    made, lengths = t.AutoModelForCausalLM.from_config(config), set()
    made.register_forward_pre_hook(
        lambda _, __, kwargs: lengths.add(kwargs["input_ids"].shape[1]), with_kwargs=True
    )
    Trial(made, 256)
    assert max(lengths) == length


def test_a_fallback_restores_the_models_own_attention():
    hf_model = built("bloom")
    own_attention = hf_model.config._attn_implementation
    loading.decoder(hf_model)
    assert hf_model.config._attn_implementation == own_attention


def test_a_model_that_ignores_its_cache_is_decoded_without_one(capsys):
    hf_model = built("gpt2")
    forward = hf_model.transformer.forward
    hf_model.transformer.forward = lambda *args, past_key_values=None, **others: forward(
        *args, **{name: others[name] for name in ("input_ids", "use_cache") if name in others}
    )
    assert kind(loading.decoder(hf_model)) == NO_CACHE
    assert "nor is the model's own cache right (logits differ by" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["gpt2", "qwen3_5_text"])
def test_adapters_in_training_mode_get_the_decoder_of_their_base(name):
    """Dropout is off in the trial, and a model may be decoded a second time."""
    config = peft.LoraConfig(target_modules="all-linear", lora_dropout=0.5, init_lora_weights=False)
    adapted = peft.get_peft_model(built(name), config).train()
    for _ in range(2):
        assert kind(loading.decoder(adapted)) == ARCHITECTURES[name][1]


def test_a_model_whose_own_forward_pass_fails_is_an_error():
    """CTRL adds positions in float32."""
    torch.manual_seed(0)
    config = t.CTRLConfig(**OLD_SIZES, dff=48)
    with pytest.raises(loading.InputError, match=r"ctrl: its forward pass fails \(mixed dtype"):
        loading.decoder(t.CTRLLMHeadModel(config).bfloat16())


def test_activations_need_a_cache():
    with pytest.raises(loading.InputError, match="Shortcut needs a model with a cache"):
        loading.decoder(built("rwkv"), with_logits=False)


def test_rounding_alone_is_no_reason_for_a_slower_decoder():
    """A deep model in bfloat16 is far from its own logits in float32, whatever decodes it."""
    torch.manual_seed(0)
    deep = HEADS_OF_8 | {"num_hidden_layers": 48}
    hf_model = t.AutoModelForCausalLM.from_config(t.AutoConfig.for_model("qwen3", **deep))
    with torch.no_grad():
        for parameter in hf_model.parameters():
            parameter.mul_(4)
    trial = Trial(hf_model.bfloat16(), 256)
    assert 0.2 < trial.allowed < 4  # twice the rounding, which is 0.9
    assert trial.misfit(SharedPromptDecoder) is None
    assert trial.misfit(lambda net: HFDecoder(net, cached=False)) is None


def test_a_shift_of_all_logits_of_a_token_is_no_difference():
    """It changes no probability; rounding shifts those of Gemma-3 by more than it changes them."""

    class Shifted(SharedPromptDecoder):
        def step(self, tokens):
            return super().step(tokens) + torch.arange(len(tokens))[:, None]

    assert Trial(model("gemma"), 256).misfit(Shifted) is None


@pytest.mark.parametrize(("error", "fits"), [(3e-4, True), (3e-3, False)])
def test_a_decoder_may_be_off_by_a_thousandth_where_nothing_is_rounded(error, fits):
    """In standard deviations of the logits."""

    class Off(SharedPromptDecoder):
        def step(self, tokens):
            logits = super().step(tokens)
            return logits + error * logits.std() * torch.randn_like(logits)

    torch.manual_seed(0)
    misfit = Trial(model("llama"), 256).misfit(Off)
    assert misfit is None if fits else misfit.startswith("logits differ by 0.00")


def test_a_model_in_bfloat16_computes_in_float32_what_one_of_the_same_weights_would():
    low, high, ids = model("llama").bfloat16(), model("llama"), torch.arange(20)[None]
    stored = {name: tensor.clone() for name, tensor in low.state_dict().items()}
    high.load_state_dict(stored)
    with torch.inference_mode():
        expected = high.float()(ids).logits
        with InFloat32():
            torch.testing.assert_close(low(ids).logits, expected, rtol=1e-4, atol=1e-4)
    assert all(tensor.equal(stored[name]) for name, tensor in low.state_dict().items())


@pytest.mark.parametrize(
    ("config", "limit"),
    [
        (t.LlamaConfig(max_position_embeddings=512), 512),
        (t.AutoConfig.for_model("mpt", max_seq_len=256), 256),
        (t.WhisperConfig(max_target_positions=448), 448),
        (t.BloomConfig(), 2**31),  # weights distances instead
        (  # rotates all keys otherwise behind the 64th token
            t.Phi3Config(
                **SIZES | {"max_position_embeddings": 4096},
                original_max_position_embeddings=64,
                rope_scaling={
                    "type": "longrope",
                    "short_factor": [1.0] * 4,
                    "long_factor": [2.0] * 4,
                },
            ),
            64,
        ),
    ],
)
def test_the_context_is_as_long_as_the_configuration_says(config, limit):
    assert loading.context_length(config) == limit
