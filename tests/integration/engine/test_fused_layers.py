import copy

import peft
import pytest
import torch

from helpers.tiny_models import VOCABULARY, model
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder

PROMPT = torch.arange(1, 40)[None] * 7 % VOCABULARY


pytestmark = pytest.mark.usefixtures("kernel_backend")


def llama(**options):
    return model("llama", **options).bfloat16()


def decoded_logits(hf_model, decoder=None):
    """Logits of the last ten tokens of the prompt, most of them by steps."""
    decoder = decoder or SharedPromptDecoder(hf_model)
    decoder.prefill_prefix(PROMPT[0, :20].tolist())
    logits = [decoder.prefill_prompts([PROMPT[0, 20:30].tolist()])]
    logits += [decoder.step(token[None]).clone() for token in PROMPT[0, 30:]]
    return torch.cat(logits).float()


def own_logits(hf_model):
    with torch.no_grad():
        return hf_model(PROMPT).logits[0, 29:].float()


@pytest.mark.parametrize("family", ["llama", "llama_mha"])
def test_fused_layers_are_at_least_as_exact_as_those_of_transformers(family):
    low = model(family).bfloat16()
    exact, plain = own_logits(low.double()), own_logits(model(family).bfloat16())
    fused = decoded_logits(model(family).bfloat16())
    assert not torch.equal(fused, plain)
    assert (fused - exact).std() < 1.2 * (plain - exact).std()


def test_a_model_keeps_its_parameters_and_computes_as_before_outside_of_a_decoder():
    hf_model, other = llama(), llama()
    before, parameters = copy.deepcopy(hf_model.state_dict()), dict(hf_model.named_parameters())
    attention = hf_model.config._attn_implementation
    decoded_logits(hf_model)
    assert all(parameters[name] is part for name, part in hf_model.named_parameters())
    assert all(part.equal(before[name]) for name, part in hf_model.state_dict().items())
    hf_model.set_attn_implementation(attention)
    options = {"max_new_tokens": 5, "do_sample": False}
    with torch.inference_mode():
        assert hf_model(PROMPT).logits.equal(other(PROMPT).logits)
        assert hf_model.generate(PROMPT, **options).equal(other.generate(PROMPT, **options))


def test_a_model_can_be_trained_after_decoding_and_decoded_again():
    hf_model, other = llama(), llama()
    decoded_logits(hf_model)
    for one in (hf_model, other):
        one.set_attn_implementation("eager")
        optimiser = torch.optim.SGD(one.parameters(), lr=1.0)
        one(PROMPT, labels=PROMPT).loss.backward()
        optimiser.step()
    pairs = zip(hf_model.parameters(), other.parameters(), strict=True)
    assert all(torch.equal(*pair) for pair in pairs)
    assert decoded_logits(hf_model).equal(decoded_logits(other))


def test_a_forward_that_somebody_else_has_replaced_is_called():
    hf_model, calls = llama(), []
    norm = hf_model.model.norm
    plain = norm.forward
    norm.forward = replaced = lambda hidden: calls.append(hidden.shape) or plain(hidden)
    decoded_logits(hf_model)
    assert len(calls) == 11
    assert norm.forward is replaced


CHANGES = {
    "replaced": lambda part, new: setattr(part, "data", new.data.clone()),
    "in place": lambda part, new: part.copy_(new),
    "in place through their data": lambda part, new: part.data.copy_(new.data),
}


@pytest.mark.parametrize("change", CHANGES)
def test_weights_that_were_changed_are_used(change):
    hf_model, other = llama(), llama(seed=1)
    decoder = SharedPromptDecoder(hf_model)
    decoded_logits(hf_model, decoder)
    with torch.no_grad():
        for part, new in zip(hf_model.parameters(), other.parameters(), strict=True):
            CHANGES[change](part, new)
    # Only a change without `data` leaves a trace that the same decoder sees.
    used = decoder if change == "in place" else None
    assert decoded_logits(hf_model, used).equal(decoded_logits(other))


def test_a_model_loaded_in_inference_mode_is_decoded():
    with torch.inference_mode():
        hf_model = llama()
    difference = decoded_logits(hf_model) - decoded_logits(llama())
    assert difference.abs().max() < 0.05


def test_a_model_in_another_precision_computes_as_before():
    hf_model = llama()
    decoded_logits(hf_model)
    hf_model.float()
    expected = own_logits(llama().float())
    torch.testing.assert_close(decoded_logits(hf_model), expected)


def test_a_projection_with_an_adapter_computes_with_it():
    config = peft.LoraConfig(target_modules=["q_proj", "up_proj"], init_lora_weights=False)
    adapted = peft.get_peft_model(llama(), config)
    exact = own_logits(copy.deepcopy(adapted).double())
    fused = decoded_logits(adapted.base_model.model)
    assert (fused - exact).std() < 0.02 * exact.std()


@pytest.mark.parametrize(
    "changed", [{"attention_bias": True, "mlp_bias": True}, {"hidden_act": "gelu"}]
)
def test_biases_and_other_activations_are_computed(changed):
    hf_model = llama(**changed)
    with torch.no_grad():
        for name, parameter in hf_model.named_parameters():
            if name.endswith("bias"):
                parameter.normal_()
    exact = own_logits(copy.deepcopy(hf_model).double())
    assert (decoded_logits(hf_model) - exact).std() < 0.02 * exact.std()


@pytest.mark.parametrize(
    "name", ["self_attn.q_proj", "self_attn.v_proj", "mlp.up_proj", "mlp.act_fn", "mlp.down_proj"]
)
def test_a_hook_on_a_layer_changes_the_logits(name):
    hf_model = llama()
    plain = decoded_logits(hf_model)
    layer = hf_model.model.layers[0].get_submodule(name)
    handle = layer.register_forward_hook(lambda _, inputs, output: 3 * output)
    hooked = decoded_logits(hf_model)
    handle.remove()
    assert not torch.equal(hooked, plain)
    assert torch.equal(decoded_logits(hf_model), plain)
