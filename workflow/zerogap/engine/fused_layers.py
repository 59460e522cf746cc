"""Llama's layers in fewer and larger operations, for decoding in bfloat16.

A step computes one token per row, so that the many small operations of a layer cost nearly as much
as its matrix products on a CPU, and a good part of them on a GPU. Here the projections that read
the same input are one product, and what lies between two products is one compiled kernel:

- queries, keys and values: one product, then a kernel that rotates queries and keys,
- the feed-forward block: one product for gate and up, then a kernel for `silu(gate) * up`,
- a norm: one kernel,
- a linear layer on a CPU that has :func:`cpu_kernels.has_products`: a product with packed weights.

The kernels compute in float32 and round once (the norm on a CPU twice, as `transformers` does),
where `transformers` rounds after every operation.

All modules stay in place, with their parameters and hooks. They compute as before outside of
inference mode, in another precision, and where a projection has a bias, an adapter or, if it would
become part of a joint one, a hook. Attention also does so where the model uses another
implementation. The model can still be trained, converted, adapted and used elsewhere. `unfuse`
takes everything back but the joint matrices, of which the weights remain views. Packed weights are
copies.
"""

import functools
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.models.llama.modeling_llama import (
    LlamaAttention,
    LlamaMLP,
    LlamaPreTrainedModel,
    LlamaRMSNorm,
)

from zerogap.engine import cpu_kernels, gpu_kernels
from zerogap.engine.shared_prompt_attention import ATTENTION


def fuse(model: PreTrainedModel) -> None:
    """Fuse the layers of a Llama model; others are left alone."""
    if not isinstance(model, LlamaPreTrainedModel):
        return
    if model.device.type == "cpu":
        unfuse(model)  # drops packed weights, which could be out of date
    for module in model.modules():
        kind = _FUSED.get(type(module))
        if kind is not None and "forward" not in vars(module):  # not fused before
            module.forward = functools.partial(_forward, kind(module), module.forward)


def unfuse(model: PreTrainedModel) -> None:
    """Give the layers that :func:`fuse` has fused their own `forward` back."""
    for module in model.modules():
        forward = vars(module).get("forward")
        if isinstance(forward, functools.partial) and forward.func is _forward:
            del module.forward


def _forward(fused: "_FusedModule", plain: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    usable = torch.is_inference_mode_enabled() and fused.is_usable()
    return (fused if usable else plain)(*args, **kwargs)


class _FusedModule(Protocol):
    def is_usable(self) -> bool:
        """Whether the module's weights, as they are now, allow it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the module's `forward` returns."""


class _FusedNorm:
    def __init__(self, norm: LlamaRMSNorm) -> None:
        self._norm = norm

    def is_usable(self) -> bool:
        return _is_bfloat16(self._norm.weight)

    def __call__(self, hidden: Tensor) -> Tensor:
        norm = self._norm
        out: Tensor = _kernels(hidden).rms_norm(hidden, norm.weight, norm.variance_epsilon)
        return out


class _FusedFeedForward:
    def __init__(self, block: Any) -> None:
        self._block = block
        self._gate_and_up = _JointProjection(block, ["gate_proj", "up_proj"])
        self._gated_product = _PackedProduct(cpu_kernels.gated_product, cpu_kernels.packed_gates)
        self._has_silu = block.config.hidden_act == "silu"

    def is_usable(self) -> bool:
        has_plain_silu = self._has_silu and not _has_hooks(self._block.act_fn)
        return has_plain_silu and self._gate_and_up.is_usable()

    def __call__(self, hidden: Tensor) -> Tensor:
        weights = self._gate_and_up.weights()
        if _PackedProduct.is_usable(weights):
            gated = self._gated_product(hidden, weights, len(weights[0]))
        else:
            gated = _kernels(hidden).gated_silu(self._gate_and_up(hidden))
        out: Tensor = self._block.down_proj(gated)
        return out


class _FusedAttention:
    def __init__(self, attention: Any) -> None:
        self._attention = attention
        self._projection = _JointProjection(attention, ["q_proj", "k_proj", "v_proj"])

    def is_usable(self) -> bool:
        # The model gets its own attention back after sampling; this module stays.
        ours = self._attention.config._attn_implementation == ATTENTION
        return ours and self._projection.is_usable()

    def __call__(
        self,
        hidden_states: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        past_key_values: Any,
        **_: Any,
    ) -> tuple[Tensor, None]:
        attention, config = self._attention, self._attention.config
        batch, length = hidden_states.shape[:2]
        heads = self._projection(hidden_states).view(batch, length, -1, attention.head_dim)
        num_queries, num_keys = config.num_attention_heads, config.num_key_value_heads
        _kernels(heads).rotate(heads, *position_embeddings, num_queries + num_keys)
        sizes = [num_queries, num_keys, num_keys]
        query, new_key, new_value = torch.split(heads.transpose(1, 2), sizes, dim=1)
        layer_index = attention.layer_idx
        key, value = past_key_values.update(new_key, new_value, layer_index)
        out = past_key_values.attend(layer_index, query, key, value, attention.scaling, None)
        return attention.o_proj(out.reshape(batch, length, -1)), None


class _FusedLinear:
    def __init__(self, layer: nn.Linear) -> None:
        self._layer = layer
        self._product = _PackedProduct(cpu_kernels.product, cpu_kernels.packed)

    def is_usable(self) -> bool:
        return _is_plain_linear(self._layer) and _PackedProduct.is_usable([self._layer.weight])

    def __call__(self, hidden: Tensor) -> Tensor:
        return self._product(hidden, [self._layer.weight], self._layer.out_features)


class _JointProjection:
    """Linear layers that read the same input as one matrix product.

    Unless they are packed, their weights become views of the joint matrix, so that they take no
    memory of their own and changes in place reach it. A weight that was replaced is joined again.
    """

    def __init__(self, parent: nn.Module, names: list[str]) -> None:
        self._parent, self._names = parent, names
        self._product = _PackedProduct(cpu_kernels.product, cpu_kernels.packed)
        self._weight: Tensor | None = None

    def _layers(self) -> list[Any]:
        return [getattr(self._parent, name) for name in self._names]

    def is_usable(self) -> bool:
        layers = self._layers()
        return all(map(_is_plain_linear, layers)) and not any(map(_has_hooks, layers))

    def weights(self) -> list[Tensor]:
        return [layer.weight for layer in self._layers()]

    def __call__(self, hidden: Tensor) -> Tensor:
        weights = self.weights()
        if _PackedProduct.is_usable(weights):
            return self._product(hidden, weights, sum(map(len, weights)))
        if self._weight is None or not _are_views(weights, self._weight):
            self._weight = _joined(weights)
        return nn.functional.linear(hidden, self._weight)


class _PackedProduct:
    """Products with the rows of some weights, which are packed for the CPU's kernel.

    They are packed again when a weight was replaced or changed in place. A change in place through
    `weight.data` leaves no trace; it is seen by the next decoder only.

    Args:
        product: of values, packed weights and the number of columns of the output.
        pack: makes the packed weights of their rows.
    """

    def __init__(
        self, product: Callable[[Tensor, Tensor, int], Tensor], pack: Callable[[Tensor], Tensor]
    ) -> None:
        self._product, self._pack = product, pack
        self._weights: list[Tensor] = []  # kept, so that no other tensor has their addresses
        self._state: list[tuple[int, int | None]] = []
        self._packed: Tensor | None = None

    @staticmethod
    def is_usable(weights: list[Tensor]) -> bool:
        """Whether the kernel takes these bfloat16 weights, and changes of them can be noticed."""
        return cpu_kernels.has_products() and not any(
            weight.is_cuda or weight.shape[1] % 2 or _version(weight) is None for weight in weights
        )

    def __call__(self, hidden: Tensor, weights: list[Tensor], num_columns: int) -> Tensor:
        state = [(weight.data_ptr(), _version(weight)) for weight in weights]
        if self._packed is None or state != self._state:
            self._packed = self._pack(torch.cat(weights))
            self._weights, self._state = [weight.detach() for weight in weights], state
        return self._product(hidden, self._packed, num_columns)


def _version(weight: Tensor) -> int | None:
    """A number that changes with changes in place; None for a tensor made in inference mode."""
    try:
        return weight._version
    except RuntimeError:
        return None


@torch.inference_mode(False)  # else the weights could not be trained any more
def _joined(weights: list[Tensor]) -> Tensor:
    """One matrix of the weights, which become views of it."""
    joint = torch.cat([weight.detach() for weight in weights])
    parts = torch.split(joint, [len(weight) for weight in weights])
    for weight, part in zip(weights, parts, strict=True):
        weight.data = part
    return joint


def _are_views(weights: list[Tensor], joint: Tensor) -> bool:
    """Whether the weights are the rows of the joint matrix, one after the other."""
    address = joint.data_ptr()
    for weight in weights:
        if weight.data_ptr() != address:
            return False
        address += weight.nbytes
    return True


def _is_plain_linear(layer: Any) -> bool:
    return type(layer) is nn.Linear and layer.bias is None and _is_bfloat16(layer.weight)


def _has_hooks(module: nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks)


def _is_bfloat16(weight: Tensor) -> bool:
    return weight.dtype == torch.bfloat16 and _kernels(weight).apply_to(weight)


def _kernels(tensor: Tensor) -> Any:
    """The module of the kernels for a tensor's device."""
    return gpu_kernels if tensor.is_cuda else cpu_kernels


_FUSED: dict[type, Callable[[Any], _FusedModule]] = {
    LlamaRMSNorm: _FusedNorm,
    LlamaMLP: _FusedFeedForward,
    LlamaAttention: _FusedAttention,
    nn.Linear: _FusedLinear,
}
