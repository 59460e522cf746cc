"""Attention to a part of the keys that also returns the summed weights of the part.

With the summed weights, attention to one part can be combined exactly with attention to others: in
a softmax the part counts as one key whose score is the logarithm of its summed weights and whose
value is the part's output.

Flash attention does this. PyTorch's public function does not return the summed weights, hence its
private operators. In bfloat16 on a CPU with dot products of AVX-512, and without tile instructions
(AMX), a compiled kernel is several times as fast (docs/benchmarks/README.md).
"""

import torch
from torch import Tensor

from zerogap.engine import cpu_kernels


def has_flash_attention(query: Tensor, key: Tensor) -> bool:
    """Whether the GPU has flash attention for query (R, Hkv, G, D) and key (Hkv, P, D)."""
    if not query.is_cuda:
        return False
    flat_query, first_key = query.flatten(0, 2)[None, None], key[None, :1]
    params = torch.backends.cuda.SDPAParams(
        flat_query, first_key, first_key, None, 0.0, False, False
    )
    return query.shape[-1] % 8 == 0 and torch.backends.cuda.can_use_flash_attention(params)


def has_kernel(query: Tensor) -> bool:
    """Whether the compiled CPU kernel computes :func:`part_attention`."""
    is_bfloat16 = query.dtype == torch.bfloat16
    return is_bfloat16 and cpu_kernels.apply_to(query) and cpu_kernels.has_products()


def part_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    num_keys: Tensor | None = None,
    num_queries: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention of scaled queries (B, H, A, D) to keys and values (B, H, K, D).

    Args:
        query: (B, H, A, D), scaled.
        key: (B, H, K, D).
        value: (B, H, K, D).
        num_keys: (B,) only the first so many keys are visible, at least one; on a CPU only.
        num_queries: (B,) the others are padding, whose results may be anything.

    Returns:
        The output (B, H, A, D) and the logarithm of the summed weights (B, H, A), in float32 or
        the queries' higher precision.
    """
    if query.is_cuda:
        out, weight, *_ = torch.ops.aten._scaled_dot_product_flash_attention(
            query, key, value, scale=1.0
        )
        return out, weight
    if has_kernel(query):
        batch, _, most_queries, _ = query.shape
        num_keys = torch.full((batch,), key.shape[2]) if num_keys is None else num_keys
        num_queries = torch.full((batch,), most_queries) if num_queries is None else num_queries
        return cpu_kernels.part_attention(query, key, value, num_keys, num_queries)
    mask = None
    if num_keys is not None:
        beyond = torch.arange(key.shape[2]) >= num_keys[:, None]
        # In the queries' dtype: for float64 queries the operator misreads a float32 mask.
        mask = query.new_zeros(beyond.shape).masked_fill_(beyond, float("-inf"))[:, None, None]
    out, weight = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        query, key, value, attn_mask=mask, scale=1.0
    )
    return out, weight


def prefix_part(prefix: tuple[Tensor, Tensor], query: Tensor) -> tuple[Tensor, Tensor]:
    """:func:`part_attention` of queries (R, Hkv, G, D) to the prefix: (Hkv, R·G, D), (Hkv, R·G).

    All rows are queries of one batch entry, since they all see the whole prefix.
    """
    num_rows, heads, group, size = query.shape
    flat = query.transpose(0, 1).reshape(1, heads, num_rows * group, size)
    out, weight = part_attention(flat, prefix[0][None], prefix[1][None])
    return out[0], weight[0]


def causal_attention(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Causal attention on a CPU of scaled queries (B, Hq, L, D) to keys and values (B, Hkv, L, D).

    Returns:
        As :func:`part_attention`, (B, Hq, L, D) and (B, Hq, L).
    """
    group = query.shape[1] // key.shape[1]
    repeated = (part.repeat_interleave(group, dim=1) for part in (key, value))
    out, weight = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        query, *repeated, is_causal=True, scale=1.0
    )
    return out, weight
