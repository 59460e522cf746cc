import copy

import peft
import pytest
import torch

from helpers.tiny_models import ARCHITECTURES, VOCABULARY, model
from zerogap.engine import cpu_kernels, fused_layers
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder

PROMPT = torch.arange(1, 40)[None] * 7 % VOCABULARY
SINGLE_LAYERS = {"kernel": {"product"}, "PyTorch": set()}  # what computes those that are not joint


pytestmark = pytest.mark.usefixtures("way")


def decoded_logits(hf_model):
    """Logits of the last ten tokens of the prompt, most of them by steps."""
    decoder = SharedPromptDecoder(hf_model)
    decoder.prefill_prefix(PROMPT[0, :20].tolist())
    logits = [decoder.prefill_prompts([PROMPT[0, 20:30].tolist()])]
    logits += [decoder.step(token[None]).clone() for token in PROMPT[0, 30:]]
    return torch.cat(logits).float()


def own_logits(hf_model):
    with torch.no_grad():
        return hf_model(PROMPT).logits[0, 29:].float()


def count_calls(monkeypatch):
    calls = []
    for name in ("rms_norm", "gated_silu", "rotate", "product", "gated_product"):
        kernel = getattr(cpu_kernels, name)
        monkeypatch.setattr(
            cpu_kernels, name, lambda *x, name=name, kernel=kernel: calls.append(name) or kernel(*x)
        )
    return calls


@pytest.mark.parametrize("family", ["llama", "llama_mha"])
def test_fused_layers_are_at_least_as_exact_as_those_of_transformers(family, way, monkeypatch):
    calls = count_calls(monkeypatch)
    low = model(family).bfloat16()
    exact, plain = own_logits(low.double()), own_logits(model(family).bfloat16())
    fused = decoded_logits(model(family).bfloat16())
    passes, layers = 11, 3
    gated = {"kernel": "gated_product", "PyTorch": "gated_silu"}[way]
    assert calls.count(gated) == calls.count("rotate") == layers * passes
    assert calls.count("rms_norm") == (2 * layers + 1) * passes
    assert calls.count("product") == {"kernel": (3 * layers + 1) * passes, "PyTorch": 0}[way]
    assert len(set(calls)) == {"kernel": 4, "PyTorch": 3}[way]
    assert (fused - exact).std() < 1.2 * (plain - exact).std()


def test_a_model_keeps_its_parameters():
    hf_model = model("llama").bfloat16()
    before = copy.deepcopy(hf_model.state_dict())
    parameters = dict(hf_model.named_parameters())
    decoded_logits(hf_model)
    assert all(parameters[name] is part for name, part in hf_model.named_parameters())
    assert all(part.equal(before[name]) for name, part in hf_model.state_dict().items())


def test_a_model_can_be_trained_after_decoding_and_decoded_again():
    hf_model, other = model("llama").bfloat16(), model("llama").bfloat16()
    decoded_logits(hf_model)
    for one in (hf_model, other):
        one.set_attn_implementation("eager")
        optimiser = torch.optim.SGD(one.parameters(), lr=1.0)
        one(PROMPT, labels=PROMPT).loss.backward()
        optimiser.step()
    assert all(
        torch.equal(x, y) for x, y in zip(hf_model.parameters(), other.parameters(), strict=True)
    )
    assert decoded_logits(hf_model).equal(decoded_logits(other))


def test_a_model_generates_after_decoding_as_before():
    hf_model, other = model("llama").bfloat16(), model("llama").bfloat16()
    attention = hf_model.config._attn_implementation
    decoded_logits(hf_model)
    hf_model.set_attn_implementation(attention)
    options = {"max_new_tokens": 5, "do_sample": False}
    with torch.inference_mode():
        assert hf_model.generate(PROMPT, **options).equal(other.generate(PROMPT, **options))


def test_an_unfused_model_computes_as_before_in_inference_mode(monkeypatch):
    hf_model, other = model("llama").bfloat16(), model("llama").bfloat16()
    decoded_logits(hf_model)
    fused_layers.unfuse(hf_model)
    calls = count_calls(monkeypatch)
    for one in (hf_model, other):
        one.set_attn_implementation("eager")
    with torch.inference_mode():
        assert hf_model(PROMPT).logits.equal(other(PROMPT).logits)
    assert calls == []


def test_a_forward_that_somebody_else_has_replaced_is_left_alone():
    hf_model = model("llama").bfloat16()
    norm = hf_model.model.norm
    norm.forward = replaced = norm.forward
    fused_layers.unfuse(hf_model)
    assert norm.forward is replaced


def test_weights_that_were_replaced_are_used():
    hf_model, other = model("llama").bfloat16(), model("llama", seed=1).bfloat16()
    decoded_logits(hf_model)
    for one, new in zip(hf_model.parameters(), other.parameters(), strict=True):
        one.data = new.data.clone()
    assert decoded_logits(hf_model).equal(decoded_logits(other))


def test_weights_that_were_changed_in_place_are_used():
    hf_model, other = model("llama").bfloat16(), model("llama", seed=1).bfloat16()
    decoder, fresh = SharedPromptDecoder(hf_model), SharedPromptDecoder(other)
    for one in (decoder, fresh):
        one.prefill_prefix(PROMPT[0, :20].tolist())
    with torch.no_grad():
        for part, new in zip(hf_model.parameters(), other.parameters(), strict=True):
            part.copy_(new)
    decoder.prefill_prefix(PROMPT[0, :20].tolist())
    logits = [one.prefill_prompts([PROMPT[0, 20:30].tolist()]) for one in (decoder, fresh)]
    assert logits[0].equal(logits[1])


def test_weights_whose_data_were_changed_are_used_by_the_next_decoder():
    hf_model, other = model("llama").bfloat16(), model("llama", seed=1).bfloat16()
    decoded_logits(hf_model)
    for part, new in zip(hf_model.parameters(), other.parameters(), strict=True):
        part.data.copy_(new.data)
    assert decoded_logits(hf_model).equal(decoded_logits(other))


def test_a_model_loaded_in_inference_mode_is_decoded():
    with torch.inference_mode():
        hf_model = model("llama").bfloat16()
    difference = decoded_logits(hf_model) - decoded_logits(model("llama").bfloat16())
    assert difference.abs().max() < 0.05


def test_a_model_in_another_precision_computes_as_before(monkeypatch):
    hf_model = model("llama").bfloat16()
    decoded_logits(hf_model)
    calls = count_calls(monkeypatch)
    hf_model.float()
    torch.testing.assert_close(
        decoded_logits(hf_model), own_logits(model("llama").bfloat16().float())
    )
    assert calls == []


def test_a_projection_with_an_adapter_is_left_alone(way, monkeypatch):
    calls = count_calls(monkeypatch)
    config = peft.LoraConfig(target_modules=["q_proj", "up_proj"], init_lora_weights=False)
    adapted = peft.get_peft_model(model("llama").bfloat16(), config)
    exact = own_logits(copy.deepcopy(adapted).double())
    fused = decoded_logits(adapted.base_model.model)
    assert set(calls) == {"rms_norm"} | SINGLE_LAYERS[way]
    assert (fused - exact).std() < 0.02 * exact.std()


def test_a_projection_with_a_bias_is_left_alone(way, monkeypatch):
    calls = count_calls(monkeypatch)
    decoded_logits(model("llama", attention_bias=True, mlp_bias=True).bfloat16())
    assert set(calls) == {"rms_norm"} | SINGLE_LAYERS[way]


def test_another_activation_is_left_alone(way, monkeypatch):
    calls = count_calls(monkeypatch)
    decoded_logits(model("llama", hidden_act="gelu").bfloat16())
    assert set(calls) == {"rms_norm", "rotate"} | SINGLE_LAYERS[way]


def test_hooks_on_the_last_projection_are_called():
    hf_model, seen = model("llama").bfloat16(), []
    down = hf_model.model.layers[0].mlp.down_proj
    down.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape))
    decoded_logits(hf_model)
    assert seen[-1] == (1, 1, 48)
    assert len(seen) == 11


@pytest.mark.parametrize(
    "name", ["self_attn.q_proj", "self_attn.v_proj", "mlp.up_proj", "mlp.act_fn"]
)
def test_a_hook_on_a_layer_of_a_joint_product_changes_the_logits(name):
    hf_model = model("llama").bfloat16()
    plain = decoded_logits(hf_model)
    layer = hf_model.model.layers[0].get_submodule(name)
    handle = layer.register_forward_hook(lambda _, inputs, output: 3 * output)
    hooked = decoded_logits(hf_model)
    handle.remove()
    assert not torch.equal(hooked, plain)
    assert torch.equal(decoded_logits(hf_model), plain)


@pytest.mark.parametrize("family", sorted(set(ARCHITECTURES) - {"llama", "llama_mha"}))
def test_other_architectures_are_left_alone(family):
    hf_model = model(family).bfloat16()
    fused_layers.fuse(hf_model)
    assert not any("forward" in vars(module) for module in hf_model.modules())
