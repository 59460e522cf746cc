"""Flash attention that also returns the summed weights of the keys.

With the summed weights, attention to one group of keys can be combined exactly with attention to
others: in a softmax the group counts as one key whose score is the logarithm of its summed weights
and whose value is the group's output. PyTorch's public function does not return them, hence the
private operators of this module.
"""

import torch
from torch import Tensor


def has_flash_attention(query: Tensor, key: Tensor) -> bool:
    """Whether the GPU has flash attention for query (R, Hkv, G, D) and key (Hkv, P, D)."""
    if not query.is_cuda:
        return False
    flat_query, first_key = query.flatten(0, 2)[None, None], key[None, :1]
    params = torch.backends.cuda.SDPAParams(
        flat_query, first_key, first_key, None, 0.0, False, False
    )
    return query.shape[-1] % 8 == 0 and torch.backends.cuda.can_use_flash_attention(params)


def flash_attention(
    query: Tensor, key: Tensor, value: Tensor, *, num_keys: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Attention of scaled queries (B, H, A, D) to keys and values (B, H, K, D).

    Args:
        query: (B, H, A, D), scaled.
        key: (B, H, K, D).
        value: (B, H, K, D).
        num_keys: (B,) only the first so many keys are visible; on a CPU only.

    Returns:
        The output (B, H, A, D) and the logarithm of the summed weights (B, H, A), in float32 or
        the queries' higher precision.
    """
    if query.is_cuda:
        out, weight, *_ = torch.ops.aten._scaled_dot_product_flash_attention(
            query, key, value, scale=1.0
        )
        return out, weight
    mask = None
    if num_keys is not None:
        beyond = torch.arange(key.shape[2]) >= num_keys[:, None]
        # In the queries' dtype: for float64 queries the operator misreads a float32 mask.
        mask = query.new_zeros(beyond.shape).masked_fill_(beyond, float("-inf"))[:, None, None]
    out, weight = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        query, key, value, attn_mask=mask, scale=1.0
    )
    return out, weight


def flash_prefix(prefix: tuple[Tensor, Tensor], query: Tensor) -> tuple[Tensor, Tensor]:
    """:func:`flash_attention` of queries (R, Hkv, G, D) to the prefix: (R, Hkv, G, D), (R, Hkv, G).

    All rows are queries of one batch entry, since they all see the whole prefix.
    """
    num_rows, heads, group, size = query.shape
    flat = query.transpose(0, 1).reshape(1, heads, num_rows * group, size)
    out, weight = flash_attention(flat, prefix[0][None], prefix[1][None])
    return (
        out.view(heads, num_rows, group, size).transpose(0, 1),
        weight.view(heads, num_rows, group).transpose(0, 1),
    )
