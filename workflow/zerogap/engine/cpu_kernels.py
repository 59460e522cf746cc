"""Compiled kernels for a CPU: attention and drawing, in float32 and bfloat16.

What the functions do has an equivalent in plain PyTorch (in `shared_prompt_attention` and
`drawing`), which is used for every other dtype and device, and instead of these if the environment
variable `ZEROGAP_CPU_KERNELS` is 0. The kernels themselves are in the modules `cpu_…_numba` next to
this one; docs/benchmarks says how much they gain. A row's result does not depend on how rows are
distributed over threads.
"""

import os
from functools import cache

import torch
from torch import Tensor, nn


def apply_to(tensor: Tensor) -> bool:
    """Whether the kernels take a tensor: bfloat16 or float32 on a CPU, unless switched off."""
    return (
        tensor.device.type == "cpu"
        and tensor.dtype in (torch.bfloat16, torch.float32)
        and os.environ.get("ZEROGAP_CPU_KERNELS") != "0"
    )


def attend(
    query: Tensor,
    own: tuple[Tensor, Tensor],
    num_own: Tensor,
    prefix: tuple[Tensor, Tensor],
    question: tuple[Tensor, Tensor],
    cell_of_row: Tensor,
) -> Tensor:
    """Attention of rows to their own tokens, in one softmax with prefix and question.

    The two other parts are as :mod:`zerogap.engine.part_attention` returns them, where the G query
    heads that read the same keys are queries of these keys.

    Args:
        query: (R, H, D), scaled.
        own: keys and values (≥R, T, Hkv, D) of each row's own tokens.
        num_own: (R,) own tokens of each row; the others are padding.
        prefix: the output (Hkv, R·G, D) of attention to the prefix, and the logarithm (Hkv, R·G) of
            its summed weights in float32.
        question: the same for the questions, (Q, Hkv, W·G, D) and (Q, Hkv, W·G), for W grid cells
            per question.
        cell_of_row: (R,) each row's grid cell, of the Q·W.

    Returns:
        (R, H, D) in the dtype of the queries; all sums are float32.
    """
    from zerogap.engine import cpu_own_tokens_numba as kernels  # loading numba takes time

    num_rows, heads, size = query.shape
    out = torch.empty_like(query, memory_format=torch.contiguous_format)
    kernels.attend(
        num_rows,
        query,
        *own,
        num_own,
        *prefix,
        *question,
        cell_of_row,
        out,
        constants=(heads // own[0].shape[2], size),
    )
    return out


def move_rows(source: Tensor, target: Tensor, width: int, own: tuple[Tensor, Tensor]) -> None:
    """Copy the first own tokens of some rows to other rows.

    Args:
        source: (N,) rows that are read.
        target: (N,) rows that are written, each once and none of them in `source`.
        width: tokens to copy.
        own: keys and values (≥R, T, Hkv, D), contiguous.
    """
    from zerogap.engine import cpu_own_tokens_numba as kernels  # loading numba takes time

    kernels.move_rows(len(source), source, target, torch.tensor([width]), *own)


def store(new: tuple[Tensor, Tensor], column: Tensor, own: tuple[Tensor, Tensor]) -> None:
    """Store a new key and value of each row.

    Args:
        new: keys and values (R, Hkv, D).
        column: (R,) where they belong among a row's own tokens.
        own: keys and values (≥R, T, Hkv, D) of all own tokens, contiguous.
    """
    from zerogap.engine import cpu_own_tokens_numba as kernels  # loading numba takes time

    kernels.store(len(column), *new, column, *own)


@cache
def has_products() -> bool:
    """Whether :func:`product` and :func:`part_attention` are used on this CPU.

    They need AVX-512's dot products of bfloat16 values. With tile instructions (AMX), which they do
    not use, PyTorch's own products and attention are taken.
    """
    capabilities = torch.cpu.get_capabilities()
    return bool(capabilities.get("avx512_bf16")) and not capabilities.get("amx_bf16")


def part_attention(
    query: Tensor,
    row_of_cell: Tensor,
    num_rows: Tensor,
    key: Tensor,
    value: Tensor,
    num_keys: Tensor,
) -> tuple[Tensor, Tensor]:
    """Attention to some keys, and the logarithm of each query's summed weights.

    Args:
        query: (R, H, G, D) in bfloat16, scaled; D is even.
        row_of_cell: (B, W) the rows that read each entry of keys.
        num_rows: (B,) the results of only the first so many rows are computed.
        key: (B, H, K, D) in bfloat16.
        value: (B, H, K, D) in bfloat16.
        num_keys: (B,) only the first so many keys are visible, at least one.

    Returns:
        The output (B, H, W·G, D) in bfloat16 and the logarithms (B, H, W·G) in float32.
    """
    # loading numba takes time
    from zerogap.engine import cpu_attention_numba as kernels
    from zerogap.engine.cpu_products_numba import COLUMNS, ROWS

    batch, heads, most_keys, size = key.shape
    group, batch_heads = query.shape[2], batch * heads
    blocks, parts = -(-most_keys // COLUMNS), -(-size // COLUMNS)
    packed_key = key.new_empty(batch_heads, blocks, size // 2, 2 * COLUMNS)
    packed_value = key.new_empty(batch_heads, parts, blocks * COLUMNS // 2, 2 * COLUMNS)
    flat = [tensor.reshape(batch_heads, -1, size) for tensor in (key, value)]
    kernels.pack(batch_heads * blocks, *flat, num_keys, packed_key, packed_value)
    num_queries = row_of_cell.shape[1] * group
    out = query.new_empty(batch, heads, num_queries, size)
    log_sum = query.new_empty(batch, heads, num_queries, dtype=torch.float32)
    kernels.part_attention(
        batch_heads * -(-num_queries // ROWS),
        query,
        row_of_cell,
        num_rows,
        packed_key,
        packed_value,
        num_keys,
        out.view(batch_heads, num_queries, size),
        log_sum.view(batch_heads, num_queries),
    )
    return out, log_sum


def packed(matrix: Tensor) -> Tensor:
    """A matrix (N, K) in bfloat16 as :func:`product` reads it, (⌈N/64⌉, K/2, 64·2); K is even.

    Values are in pairs of one row; a block has 64 rows, the last one is padded with zeros.
    """
    from zerogap.engine import cpu_products_numba as kernels  # loading numba takes time

    columns, size = matrix.shape
    padded = nn.functional.pad(matrix, (0, 0, 0, -columns % kernels.COLUMNS))
    pairs = padded.view(torch.int32).view(-1, kernels.COLUMNS, size // 2)
    return pairs.transpose(1, 2).contiguous().view(matrix.dtype)


def packed_gates(matrix: Tensor) -> Tensor:
    """A matrix (2N, K) of gates above factors as :func:`gated_product` reads it."""
    from zerogap.engine import cpu_products_numba as kernels  # loading numba takes time

    rows, size = matrix.shape
    parts = matrix.view(2, rows // 2, size)
    parts = nn.functional.pad(parts, (0, 0, 0, -(rows // 2) % kernels.GATED))
    blocks = parts.view(2, -1, kernels.GATED, size).transpose(0, 1)
    return packed(blocks.reshape(-1, size))


def product(values: Tensor, packed_matrix: Tensor, num_columns: int) -> Tensor:
    """Products (…, N) in bfloat16 of values (…, K) with a matrix (N, K), with float32 sums.

    Args:
        values: in bfloat16.
        packed_matrix: the matrix as :func:`packed` returns it.
        num_columns: N.
    """
    from zerogap.engine import cpu_products_numba as kernels  # loading numba takes time

    return _product(values, packed_matrix, kernels.COLUMNS, num_columns)


def gated_product(values: Tensor, packed_matrix: Tensor, num_columns: int) -> Tensor:
    """silu(gates) * factors (…, N) of the products with a matrix (2N, K), rounded once.

    Args:
        values: (…, K) in bfloat16.
        packed_matrix: the matrix as :func:`packed_gates` returns it.
        num_columns: N.
    """
    from zerogap.engine import cpu_products_numba as kernels  # loading numba takes time

    return _product(values, packed_matrix, kernels.GATED, num_columns)


def _product(
    values: Tensor, packed_matrix: Tensor, columns_per_block: int, num_columns: int
) -> Tensor:
    from zerogap.engine import cpu_products_numba as kernels  # loading numba takes time

    flat, blocks = values.reshape(-1, values.shape[-1]), len(packed_matrix)
    tiles = -(-len(flat) // kernels.ROWS)
    out = values.new_empty(tiles * kernels.ROWS, blocks * columns_per_block)
    num_tasks = blocks * kernels.num_groups(tiles)
    kernels.product(num_tasks, flat, packed_matrix, out, constants=(columns_per_block,))
    whole = out[: len(flat), :num_columns].contiguous()
    return whole.view(*values.shape[:-1], num_columns)


def draw(logits: Tensor, uniform: Tensor, temperature: float, row: Tensor) -> Tensor:
    """Draw tokens (N,) by inverse CDF from softmax(logits (R, V) / temperature).

    Weights and the sums of a block of tokens are float32, sums of blocks float64.

    Args:
        logits: (R, V).
        uniform: (N,) uniforms in [0, 1).
        temperature: divides the logits.
        row: (N,) the row of logits that each uniform draws from.

    Returns:
        The tokens; -1 where a row's logits are NaN.
    """
    from zerogap.engine import cpu_kernels_numba  # loading numba takes time

    tokens = torch.empty_like(row)
    ends = torch.bincount(row, minlength=len(logits)).cumsum(0)
    scale = torch.tensor([1 / temperature], dtype=torch.float32)
    cpu_kernels_numba.draw(len(logits), scale, logits, uniform, row.argsort(), ends, tokens)
    return tokens


def rms_norm(hidden: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """Normalise bfloat16 (…, N) by its root mean square and multiply it by the weight (N,)."""
    from zerogap.engine import cpu_kernels_numba  # loading numba takes time

    out = torch.empty_like(hidden, memory_format=torch.contiguous_format)
    rows, size = hidden.shape[:-1].numel(), hidden.shape[-1]
    arrays = hidden.reshape(rows, size), weight, out.view(rows, size)
    cpu_kernels_numba.rms_norm(rows, *arrays, constants=(epsilon,))
    return out


def gated_silu(joined: Tensor) -> Tensor:
    """silu(gate) * up (…, N) of both next to each other in bfloat16, (…, 2N) and contiguous."""
    from zerogap.engine import cpu_kernels_numba  # loading numba takes time

    rows, size = joined.shape[:-1].numel(), joined.shape[-1] // 2
    out = joined.new_empty(*joined.shape[:-1], size)
    cpu_kernels_numba.gated_silu(rows, joined.view(rows, -1), out.view(rows, size))
    return out


def rotate(heads: Tensor, cos: Tensor, sin: Tensor, num_rotated: int) -> None:
    """Apply rotary position embeddings to the first heads, in place.

    Args:
        heads: (B, L, H, D) in bfloat16, contiguous.
        cos: (B, L, D), whose two halves belong to the two halves of a head.
        sin: (B, L, D).
        num_rotated: heads to rotate; those behind them stay as they are.
    """
    from zerogap.engine import cpu_kernels_numba  # loading numba takes time

    batch, length, num_heads, size = heads.shape
    rows = batch * length
    tensors = heads.view(rows, num_heads, size), cos.view(rows, size), sin.view(rows, size)
    cpu_kernels_numba.rotate(rows, *tensors, constants=(num_rotated,))
