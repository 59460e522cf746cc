"""Attention to a part of the keys that also returns the summed weights of the part.

With the summed weights, attention to one part can be combined exactly with attention to others: in
a softmax the part counts as one key whose score is the logarithm of its summed weights and whose
value is the part's output.

Flash attention does this. PyTorch's public function does not return the summed weights, hence its
private operators. In bfloat16 on a CPU without tile instructions (AMX), two matrix products and a
compiled softmax between them are two to four times as fast; with them, flash attention is twice as
fast (docs/benchmarks/README.md).
"""

from functools import cache

import torch
from torch import Tensor

from zerogap.engine import cpu_kernels

SCORES_AT_ONCE = 1 << 22  # by products, in all heads: 8 MiB in bfloat16, and as much for remainders


def has_flash_attention(query: Tensor, key: Tensor) -> bool:
    """Whether the GPU has flash attention for query (R, Hkv, G, D) and key (Hkv, P, D)."""
    if not query.is_cuda:
        return False
    flat_query, first_key = query.flatten(0, 2)[None, None], key[None, :1]
    params = torch.backends.cuda.SDPAParams(
        flat_query, first_key, first_key, None, 0.0, False, False
    )
    return query.shape[-1] % 8 == 0 and torch.backends.cuda.can_use_flash_attention(params)


@cache
def prefers_products() -> bool:
    """Whether matrix products are faster than flash attention in bfloat16 on this CPU."""
    return not torch.cpu.get_capabilities().get("amx_bf16", False)


def part_attention(
    query: Tensor, key: Tensor, value: Tensor, *, num_keys: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Attention of scaled queries (B, H, A, D) to keys and values (B, H, K, D).

    Args:
        query: (B, H, A, D), scaled.
        key: (B, H, K, D).
        value: (B, H, K, D).
        num_keys: (B,) only the first so many keys are visible, at least one; on a CPU only.

    Returns:
        The output (B, H, A, D) and the logarithm of the summed weights (B, H, A), in float32 or
        the queries' higher precision.
    """
    if query.is_cuda:
        out, weight, *_ = torch.ops.aten._scaled_dot_product_flash_attention(
            query, key, value, scale=1.0
        )
        return out, weight
    if query.dtype == torch.bfloat16 and cpu_kernels.apply_to(query) and prefers_products():
        return _by_products(query, key, value, num_keys)
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


def _by_products(
    query: Tensor, key: Tensor, value: Tensor, num_keys: Tensor | None
) -> tuple[Tensor, Tensor]:
    """:func:`part_attention` in bfloat16 on a CPU.

    A CPU has no product of bfloat16 matrices that returns float32, and a score of ten or more
    rounded to bfloat16 would change its weight by percents. So the product is taken twice: first
    rounded, then with the rounded scores subtracted before rounding, which leaves what rounding had
    taken from them. The sum of the two has the precision of 16 bits or more.
    """
    batch, heads, num_queries, size = query.shape
    visible = torch.full((batch,), key.shape[2]) if num_keys is None else num_keys
    visible = visible.repeat_interleave(heads)
    transposed, values = key.flatten(0, 1).transpose(1, 2), value.flatten(0, 1)
    outs, weights = [], []
    chunk = max(1, SCORES_AT_ONCE // (batch * heads * key.shape[2]))
    for queries in torch.split(query.flatten(0, 1), chunk, dim=1):
        scores = torch.bmm(queries, transposed)
        remainder = torch.baddbmm(scores, queries, transposed, beta=-1)
        weights.append(cpu_kernels.softmax(scores, remainder, visible))
        outs.append(torch.bmm(scores, values))
    shape = (batch, heads, num_queries)
    return _joined(outs).view(*shape, size), _joined(weights).view(shape)


def _joined(chunks: list[Tensor]) -> Tensor:
    """Chunks of queries (B·H, a, …) as one tensor; a single one is not copied."""
    return chunks[0] if len(chunks) == 1 else torch.cat(chunks, 1)
