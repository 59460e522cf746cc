"""Attention to a part of the keys that also returns the summed weights of the part.

With the summed weights, attention to one part can be combined exactly with attention to others: in
a softmax the part counts as one key whose score is the logarithm of its summed weights and whose
value is the part's output.

Flash attention does this. PyTorch's public function does not return the summed weights, hence its
private operators. In bfloat16 on a CPU with dot products of AVX-512, and without tile instructions
(AMX), a compiled kernel is several times as fast (docs/benchmarks/README.md).
"""

from functools import lru_cache

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
    row_of_cell: Tensor | None = None,
    num_rows: Tensor | None = None,
    num_keys: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention of rows to B entries of keys and values, each of which some of the rows read.

    Args:
        query: (R, H, G, D), scaled.
        key: (B, H, K, D).
        value: (B, H, K, D).
        row_of_cell: (B, W) the rows that read each entry; None: all rows read the only one.
        num_rows: (B,) cells behind the first so many are padding, whose results may be anything.
        num_keys: (B,) only the first so many keys are visible, at least one; on a CPU only.

    Returns:
        The output (B, H, W·G, D) and the logarithm of the summed weights (B, H, W·G), in float32 or
        the queries' higher precision.
    """
    if has_kernel(query):
        batch, *_, most_keys, _ = key.shape
        row_of_cell = _all_rows(len(query)) if row_of_cell is None else row_of_cell
        num_rows = _filled(batch, row_of_cell.shape[1]) if num_rows is None else num_rows
        num_keys = _filled(batch, most_keys) if num_keys is None else num_keys
        return cpu_kernels.part_attention(query, row_of_cell, num_rows, key, value, num_keys)
    cells = query[None] if row_of_cell is None else query[row_of_cell]  # (B, W, H, G, D)
    queries = cells.transpose(1, 2).flatten(2, 3)
    if query.is_cuda:
        out, weight, *_ = torch.ops.aten._scaled_dot_product_flash_attention(
            queries, key, value, scale=1.0
        )
        return out, weight
    mask = None
    if num_keys is not None:
        beyond = torch.arange(key.shape[2]) >= num_keys[:, None]
        # In the queries' dtype: for float64 queries the operator misreads a float32 mask.
        mask = query.new_zeros(beyond.shape).masked_fill_(beyond, float("-inf"))[:, None, None]
    out, weight = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        queries, key, value, attn_mask=mask, scale=1.0
    )
    return out, weight


# Every layer of a step asks for the same ones.
@lru_cache(maxsize=1)
def _all_rows(count: int) -> Tensor:
    return torch.arange(count)[None]


@lru_cache(maxsize=4)
def _filled(count: int, number: int) -> Tensor:
    return torch.full((count,), number)


def prefix_part(prefix: tuple[Tensor, Tensor], query: Tensor) -> tuple[Tensor, Tensor]:
    """:func:`part_attention` of queries (R, Hkv, G, D) to the prefix: (Hkv, R·G, D), (Hkv, R·G)."""
    out, weight = part_attention(query, prefix[0][None], prefix[1][None])
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
