"""Attention part by part: to the prefix, to questions, and to a row's generated tokens.

Attention to a part of the keys also returns the summed weights of the part. With them it can be
combined exactly with attention to others: in a softmax the part counts as one key whose score is
the logarithm of its summed weights and whose value is the part's output.

Flash attention does this. PyTorch's public function does not return the summed weights, hence its
private operators, which are called here and nowhere else.
"""

import torch
from torch import Tensor

from zerogap.engine import kernels
from zerogap.engine.prompt_cache import KeyValue, LayerCache

Part = tuple[Tensor, Tensor]  # the output, and the logarithm of the summed weights


def attend_step(
    layer: LayerCache,
    query: Tensor,
    *,
    num_question: Tensor,
    num_generated: Tensor,
    row_of_cell: Tensor,
    cell_of_row: Tensor,
    num_rows: Tensor,
    question_length: Tensor,
) -> Tensor:
    """Attention of rows to prefix, question and generated tokens, in one softmax.

    The two last arguments are on the host and used on a CPU only.

    Args:
        layer: its keys and values, and the kernel that attends to them.
        query: (R, Hkv, G, D), scaled.
        num_question: (R,) tokens of each row's question; the others are padding.
        num_generated: (R,) generated tokens of each row, at least one.
        row_of_cell: (Q, W) the rows of each question.
        cell_of_row: (R,) each row's cell, of the Q·W.
        num_rows: (Q,) rows of each question; the cells behind them are padding.
        question_length: (Q,) tokens of each question.

    Returns:
        (R, Hkv, G, D) in the dtype of the queries. Sums are taken in float32.
    """
    rows, heads, group, size = query.shape
    question, generated = layer.question, layer.generated
    to_prefix = prefix_part(layer.prefix, query) if layer.prefix[0].shape[1] else None
    if layer.step_kernel == "gpu":
        from zerogap.engine.kernels import gpu_triton

        slot = cell_of_row // row_of_cell.shape[1]
        return gpu_triton.attend(
            query, to_prefix, question, generated, num_question, num_generated, slot
        )
    from zerogap.engine.kernels import cpu_own_tokens

    to_question = part_attention(
        query, *question, row_of_cell=row_of_cell, num_rows=num_rows, num_keys=question_length
    )
    if to_prefix is None:
        no_weight = to_question[1].new_full((heads, rows * group), float("-inf"))
        to_prefix = query.new_zeros(heads, rows * group, size), no_weight
    by_token = generated[0].transpose(1, 2), generated[1].transpose(1, 2)
    flat = query.flatten(1, 2)
    out = cpu_own_tokens.attend(flat, by_token, num_generated, to_prefix, to_question, cell_of_row)
    return out.view(query.shape)


def part_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    row_of_cell: Tensor | None = None,
    num_rows: Tensor | None = None,
    num_keys: Tensor | None = None,
) -> Part:
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
    if kernels.attends_to_parts(query):
        from zerogap.engine.kernels import cpu_part_attention

        batch, *_, most_keys, _ = key.shape
        row_of_cell = torch.arange(len(query))[None] if row_of_cell is None else row_of_cell
        num_rows = torch.full((batch,), row_of_cell.shape[1]) if num_rows is None else num_rows
        num_keys = torch.full((batch,), most_keys) if num_keys is None else num_keys
        return cpu_part_attention.part_attention(query, row_of_cell, num_rows, key, value, num_keys)
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


def prefix_part(prefix: KeyValue, query: Tensor) -> Part:
    """:func:`part_attention` of queries (R, Hkv, G, D) to the prefix: (Hkv, R·G, D), (Hkv, R·G)."""
    out, weight = part_attention(query, prefix[0][None], prefix[1][None])
    return out[0], weight[0]


def attend_prompts(
    prefix: KeyValue, query: Tensor, key: Tensor, value: Tensor, lengths: list[int]
) -> Tensor:
    """Attention (B, L, Hq, D) of scaled queries (B, Hq, L, D) to a prefix and their own L tokens.

    Each of the two parts counts by its summed weights; the prefix may be empty. A sequence's own
    part is computed without the padding, whose amount would change its rounding. On a CPU only.
    """
    batch, query_heads, length, size = query.shape
    heads = key.shape[1]
    group = query_heads // heads
    own_out = query.new_zeros(batch, length, query_heads, size)
    own_weight = query.new_zeros(batch, length, query_heads, dtype=torch.float32)
    for at, count in enumerate(lengths):
        tokens = (slice(at, at + 1), slice(None), slice(0, count))
        repeated = (part[tokens].repeat_interleave(group, dim=1) for part in (key, value))
        out, weight = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            query[tokens], *repeated, is_causal=True, scale=1.0
        )
        own_out[at, :count], own_weight[at, :count] = out[0].transpose(0, 1), weight[0].T
    if not prefix[0].shape[1]:
        return own_out
    grouped = query.transpose(1, 2).reshape(batch * length, heads, group, size)
    prefix_out, prefix_weight = prefix_part(prefix, grouped)
    shape = (heads, batch * length, group, -1)
    prefix_out = prefix_out.view(shape).transpose(0, 1).reshape(batch, length, query_heads, size)
    prefix_weight = prefix_weight.view(shape).transpose(0, 1).reshape(batch, length, query_heads)
    share = (own_weight - prefix_weight).sigmoid()[..., None]
    return torch.lerp(prefix_out.float(), own_out.float(), share).to(query.dtype)
