import copy
import importlib
import importlib.metadata
import itertools
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import peft
import pytest
import torch
from transformers.models.llama.modeling_llama import LlamaMLP

import zerogap
from helpers.tiny_models import model
from zerogap.data.extraction import extraction_rule
from zerogap.errors import InputError
from zerogap.io import meaning
from zerogap.sampling.identity import (
    extraction_identity,
    model_identity,
    source_digest,
    strategy_identity,
    versions,
)
from zerogap.strategies.identity import Identity


def edited(change):
    net = model("llama")
    with torch.no_grad():
        change(net)
    return net


MODELS = {
    "one value of the LM head": lambda net: net.lm_head.weight[200, 7].add_(1e-6),
    "one value of the last layer": lambda net: net.model.layers[-1].mlp.up_proj.weight[0, 0].neg_(),
    "a buffer": lambda net: net.model.rotary_emb.inv_freq.mul_(2),
    "the configuration": lambda net: setattr(net.config, "rms_norm_eps", 1e-3),
    "the dtype": lambda net: net.float(),
    "attention's scaling": lambda net: setattr(net.model.layers[0].self_attn, "scaling", 0.3),
    "a norm's epsilon": lambda net: setattr(net.model.norm, "variance_epsilon", 1e-2),
    "an activation": lambda net: setattr(net.model.layers[1].mlp, "act_fn", torch.nn.GELU()),
}


@pytest.mark.parametrize("change", MODELS)
def test_a_model_is_another_if_anything_in_it_changed(change) -> None:
    assert model_identity(edited(MODELS[change])) != model_identity(model("llama"))
    assert model_identity(model("llama")) == model_identity(model("llama"))


def test_a_model_is_another_if_the_forward_pass_of_a_class_changed(monkeypatch) -> None:
    before, forward = model_identity(model("llama")), LlamaMLP.forward
    monkeypatch.setattr(LlamaMLP, "forward", lambda layer, x: forward(layer, x) * 1.01)
    assert model_identity(model("llama")) != before


@pytest.mark.parametrize(
    "change",
    [
        lambda net: net.model.layers[1].register_forward_hook(lambda *_: None),
        lambda net: net.model.layers[1].register_forward_pre_hook(lambda *_: None),
        lambda net: setattr(net.model.layers[1], "forward", partial(net.model.layers[1].forward)),
        lambda net: setattr(net.model.layers[1], "forward", lambda *args, **_: args),
    ],
    ids=["hook", "pre-hook", "library's method", "method"],
)
def test_a_model_with_a_hook_or_a_replaced_method_cannot_be_resumed(change, request) -> None:
    net = model("llama")
    before = model_identity(net)
    change(net)
    if "library" in request.node.name:
        assert model_identity(net) == before
        return
    with pytest.raises(InputError, match=r"^output: .*, because model.layers.1 has a hook"):
        model_identity(net)


def test_a_models_identity_leaves_it_as_it_is() -> None:
    net, threads = model("llama").train(), torch.get_num_threads()
    model_identity(net)
    assert net.training
    assert torch.get_num_threads() == threads


def test_a_models_identity_includes_the_active_adapter_and_its_scaling():
    config = peft.LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False)
    net = peft.get_peft_model(model("llama"), config, "first")
    net.add_adapter("second", config)
    identities = [model_identity(net)]
    net.set_adapter("second")
    identities.append(model_identity(net))
    with net.disable_adapter():
        identities.append(model_identity(net))
    net.base_model.model.model.layers[0].self_attn.q_proj.scaling["second"] = 7.0
    identities.append(model_identity(net))
    assert all(a != b for a, b in itertools.combinations(identities, 2))
    net.set_adapter("second")
    assert model_identity(net) == identities[-1]


@dataclass(frozen=True)
class WithArrays:
    weights: np.ndarray
    bias: torch.Tensor
    words: frozenset[str] = frozenset({"a", "b"})
    path: Path = Path("x")


class Plain:
    def __init__(self, scale: object) -> None:
        self.scale = scale


def with_arrays(value=0.0):
    weights = np.zeros(5000)
    weights[2500] = value
    return WithArrays(weights, torch.ones(3))


@pytest.mark.parametrize(
    ("strategy", "other"),
    [
        (zerogap.RailCap(n=4), zerogap.RailCap(n=5)),
        (zerogap.RailCap(n=4), zerogap.TED()),
        (zerogap.RailCap(n=4), None),
        (with_arrays(), with_arrays(1.0)),
        (Plain(1.5), Plain(2.5)),
        (Plain({"a": [1, 2]}), Plain({"a": [1, 3]})),
        (Plain(Plain(1)), Plain(Plain(2))),
    ],
)
def test_strategies_differ_where_their_parameters_do(strategy, other) -> None:
    assert strategy_identity(strategy) != strategy_identity(other)
    assert strategy_identity(strategy) == strategy_identity(copy.deepcopy(strategy))


def test_the_order_of_a_set_makes_no_other_strategy() -> None:
    assert strategy_identity(Plain({1, 2, 3})) == strategy_identity(Plain({3, 2, 1}))


@pytest.mark.parametrize(
    "value", [lambda logits: logits, len, object()], ids=["function", "built-in", "object"]
)
def test_a_parameter_that_cannot_be_written_down_is_an_error(value) -> None:
    with pytest.raises(InputError, match=r"strategy Plain: .* make it a dataclass of plain values"):
        strategy_identity(Plain(value))


def test_a_strategy_is_another_if_a_function_of_its_module_changed(tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    found, rules = [], []
    for number in (1, 2):
        name = f"with_helper_{number}"
        helper = f"def helper(): return {number}\n"
        users = "class Mine: pass\ndef extract(text): return helper()\n"
        (tmp_path / f"{name}.py").write_text(helper + users)
        found.append(source_digest(importlib.import_module(name).Mine))
        rules.append(extraction_identity(extraction_rule(f"{name}:extract"))[1])
    assert found[0] != found[1]
    assert source_digest(Identity) == meaning.digest("zerogap.strategies.identity")
    assert rules == found
    assert extraction_identity(extraction_rule("numeric")) == ["numeric", None]


def test_a_class_without_source_has_no_digest() -> None:
    typed_in = type("Mine", (), {"__module__": "__main__"})
    assert source_digest(typed_in) is None


def test_a_digest_of_our_code_is_among_the_versions(monkeypatch) -> None:
    before = versions()
    monkeypatch.setattr("zerogap.io.meaning.digest", lambda *modules: "edited")
    assert versions() != before


def test_versions_need_no_installed_zerogap(monkeypatch) -> None:
    """In the environments of `--sdm conda` the checkout is only on the path."""
    installed = {"torch": "1", "transformers": "2", "tokenizers": "3", "numpy": "4"}
    monkeypatch.setattr(importlib.metadata, "version", installed.__getitem__)
    assert versions().items() >= (installed | {"zerogap": zerogap.__version__}).items()
