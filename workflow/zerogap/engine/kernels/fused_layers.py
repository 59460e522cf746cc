"""Llama's layers in fewer and larger operations, for decoding in bfloat16.

A step computes one token per row, so that the many small operations of a layer cost nearly as much
as its matrix products on a CPU, and a good part of them on a GPU. Here the projections that read
the same input are one product, and what lies between two products is one compiled kernel:

- queries, keys and values: one product, then a kernel that rotates queries and keys,
- the feed-forward block: one product for gate and up, then a kernel for `silu(gate) * up`,
- a norm: one kernel,
- a linear layer where :func:`zerogap.engine.kernels.multiplies`: a product with packed weights.

The kernels compute in float32 and round once (the norm on a CPU twice, as `transformers` does),
where `transformers` rounds after every operation.

The model's modules stay in place, with their parameters and hooks, and compute otherwise only while
:meth:`FusedLayers.applied` is active. A module is left alone where a projection has a bias, an
adapter or, if it would become part of a joint one, a hook, and where its `forward` was replaced.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.models.llama.modeling_llama import (
    LlamaAttention,
    LlamaMLP,
    LlamaPreTrainedModel,
    LlamaRMSNorm,
)

from zerogap.engine import kernels


class FusedLayers:
    """The fused layers of a Llama model in bfloat16. Other models have none."""

    def __init__(self, model: PreTrainedModel) -> None:
        has_layers = isinstance(model, LlamaPreTrainedModel) and model.dtype == torch.bfloat16
        self._layers = [
            (module, _LAYERS[type(module)](module))
            for module in (model.modules() if has_layers else [])
            if type(module) in _LAYERS
        ]

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Compute the model's forward passes by the fused layers while the block runs."""
        replaced = []
        for module, layer in self._layers:
            own = vars(module)
            if "forward" not in own and layer.is_usable():
                own["forward"] = layer
                replaced.append(own)
        try:
            yield
        finally:
            for own in replaced:
                del own["forward"]


class _FusedNorm:
    def __init__(self, norm: LlamaRMSNorm) -> None:
        self._norm = norm

    def is_usable(self) -> bool:
        return kernels.fuses(self._norm.weight)

    def __call__(self, hidden: Tensor) -> Tensor:
        norm = self._norm
        out: Tensor = _kernels(hidden).rms_norm(hidden, norm.weight, norm.variance_epsilon)
        return out


class _FusedFeedForward:
    def __init__(self, block: Any) -> None:
        self._block = block
        self._packed = _PackedWeights()
        self._has_silu = block.config.hidden_act == "silu"

    def is_usable(self) -> bool:
        has_plain_silu = self._has_silu and not _has_hooks(self._block.act_fn)
        return has_plain_silu and _can_join([self._block.gate_proj, self._block.up_proj])

    def __call__(self, hidden: Tensor) -> Tensor:
        weights = [self._block.gate_proj.weight, self._block.up_proj.weight]
        if _can_pack(weights):
            from zerogap.engine.kernels import cpu_products

            packed = self._packed.of(weights, cpu_products.packed_gates)
            gated = cpu_products.gated_product(hidden, packed, len(weights[0]))
        else:
            gated = _kernels(hidden).gated_silu(nn.functional.linear(hidden, _joined(weights)))
        out: Tensor = self._block.down_proj(gated)
        return out


class _FusedAttention:
    def __init__(self, attention: Any) -> None:
        self._attention = attention
        self._packed = _PackedWeights()

    def is_usable(self) -> bool:
        return _can_join(self._projections())

    def _projections(self) -> list[Any]:
        return [self._attention.q_proj, self._attention.k_proj, self._attention.v_proj]

    def __call__(
        self,
        hidden_states: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        attention_pass: Any,
        **_: Any,
    ) -> tuple[Tensor, None]:
        attention, config = self._attention, self._attention.config
        batch, length = hidden_states.shape[:2]
        weights = [layer.weight for layer in self._projections()]
        heads = self._packed.product(hidden_states, weights)
        heads = heads.view(batch, length, -1, attention.head_dim)
        num_queries, num_keys = config.num_attention_heads, config.num_key_value_heads
        _kernels(heads).rotate(heads, *position_embeddings, num_queries + num_keys)
        sizes = [num_queries, num_keys, num_keys]
        query, new_key, new_value = torch.split(heads.transpose(1, 2), sizes, dim=1)
        layer_index = attention.layer_idx
        key, value = attention_pass.update(new_key, new_value, layer_index)
        out = attention_pass.attend(layer_index, query, key, value, attention.scaling, None)
        return attention.o_proj(out.reshape(batch, length, -1)), None


class _FusedLinear:
    def __init__(self, layer: nn.Linear) -> None:
        self._layer = layer
        self._packed = _PackedWeights()

    def is_usable(self) -> bool:
        return _is_plain(self._layer) and _can_pack([self._layer.weight])

    def __call__(self, hidden: Tensor) -> Tensor:
        return self._packed.product(hidden, [self._layer.weight])


class _PackedWeights:
    """The rows of some weights packed for the CPU's kernel, again when one of them has changed.

    A change in place through `weight.data` leaves no trace; it is seen by the next decoder only.
    """

    def __init__(self) -> None:
        self._weights: list[Tensor] = []  # kept, so that no other tensor has their addresses
        self._state: list[tuple[int, int | None]] = []
        self._packed = torch.empty(0)

    def of(self, weights: list[Tensor], pack: Callable[[Tensor], Tensor]) -> Tensor:
        """What `pack` makes of the weights' rows."""
        state = [(weight.data_ptr(), _version(weight)) for weight in weights]
        if state != self._state:
            self._packed = pack(torch.cat(weights))
            self._weights, self._state = [weight.detach() for weight in weights], state
        return self._packed

    def product(self, hidden: Tensor, weights: list[Tensor]) -> Tensor:
        """Products (…, N) of values (…, K) with all rows of the weights, N of them."""
        if not _can_pack(weights):
            return nn.functional.linear(hidden, _joined(weights))
        from zerogap.engine.kernels import cpu_products

        packed = self.of(weights, cpu_products.packed)
        return cpu_products.product(hidden, packed, sum(map(len, weights)))


def _can_pack(weights: list[Tensor]) -> bool:
    """Whether the CPU's kernel takes these weights, and changes of them can be noticed."""
    return kernels.multiplies(weights[0]) and not any(
        weight.shape[1] % 2 or _version(weight) is None for weight in weights
    )


def _version(weight: Tensor) -> int | None:
    """A number that changes with changes in place; None for a tensor made in inference mode."""
    try:
        return weight._version
    except RuntimeError:
        return None


def _can_join(layers: list[Any]) -> bool:
    return all(map(_is_plain, layers)) and not any(map(_has_hooks, layers))


def _joined(weights: list[Tensor]) -> Tensor:
    """One matrix of the weights, which become views of it if they are not views of one already.

    So they take no memory of their own, and changes in place reach the matrix.
    """
    first, end = weights[0], weights[0].data_ptr()
    storage = first.untyped_storage()
    for weight in weights:
        follows = weight.data_ptr() == end and weight.is_contiguous()
        end += weight.nbytes
        if not follows or end > storage.data_ptr() + storage.nbytes():
            break
    else:
        # Unlike `as_strided`, also for weights made in inference mode.
        shape = sum(map(len, weights)), first.shape[1]
        return first.new_empty(0).set_(storage, first.storage_offset(), shape, first.stride())
    with torch.inference_mode(False):  # else the weights could not be trained any more
        joint = torch.cat([weight.detach() for weight in weights])
        parts = torch.split(joint, [len(weight) for weight in weights])
        for weight, part in zip(weights, parts, strict=True):
            weight.data = part
    return joint


def _is_plain(layer: Any) -> bool:
    return type(layer) is nn.Linear and layer.bias is None and kernels.fuses(layer.weight)


def _has_hooks(module: nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks)


def _kernels(tensor: Tensor) -> Any:
    """The module of the kernels for a tensor's device."""
    if tensor.is_cuda:
        from zerogap.engine.kernels import gpu_triton

        return gpu_triton
    from zerogap.engine.kernels import cpu_rows

    return cpu_rows


_LAYERS: dict[type, Callable[[Any], Any]] = {
    LlamaRMSNorm: _FusedNorm,
    LlamaMLP: _FusedFeedForward,
    LlamaAttention: _FusedAttention,
    nn.Linear: _FusedLinear,
}
