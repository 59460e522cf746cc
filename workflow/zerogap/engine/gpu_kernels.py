"""Compiled kernels for a GPU: attention of a step, and what lies between the products of a layer.

What the functions do has an equivalent in plain PyTorch (in `shared_prompt_attention` and in the
models), which is used for every other dtype and device, where Triton cannot compile, and instead of
these if the environment variable `ZEROGAP_GPU_KERNELS` is 0. The kernels themselves are in
:mod:`zerogap.engine.gpu_kernels_triton`.
"""

import contextlib
import os
import sys
from functools import cache
from typing import Any

import torch
from torch import Tensor

LARGEST_HEAD = 256  # values per head; a kernel keeps a head in registers
OLDEST_CAPABILITY = (8, 0)  # before it there is neither bfloat16 nor flash attention


def apply_to(tensor: Tensor) -> bool:
    """Whether the kernels take a tensor: bfloat16, float16 or float32 on a GPU, unless off."""
    return (
        tensor.is_cuda
        and tensor.dtype in (torch.bfloat16, torch.float16, torch.float32)
        and os.environ.get("ZEROGAP_GPU_KERNELS") != "0"
        and _works(tensor.device)
    )


@cache
def _works(device: torch.device) -> bool:
    """Whether Triton can compile for the device, which needs a C compiler at run time."""
    if device.type == "cuda" and torch.cuda.get_device_capability(device) < OLDEST_CAPABILITY:
        return False
    values = torch.ones(1, 16, dtype=torch.bfloat16, device=device)
    try:
        return bool(torch.isfinite(rms_norm(values, values[0], 1e-6)).all())
    except Exception as error:  # compilers and drivers fail in many ways
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        print(
            f"warning: Triton cannot compile kernels here ({reason}); decoding without them, "
            "which is slower",
            file=sys.stderr,
        )
        return False


def _current_device(tensor: Tensor) -> contextlib.AbstractContextManager[Any]:
    """Make a tensor's device the current one, where Triton launches kernels."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else contextlib.nullcontext()


def attend(
    query: Tensor,
    prefix: tuple[Tensor, Tensor] | None,
    question: tuple[Tensor, Tensor],
    own: tuple[Tensor, Tensor],
    num_question: Tensor,
    num_own: Tensor,
    slot: Tensor,
) -> Tensor:
    """Attention of rows to prefix, question and own tokens, in one softmax.

    Args:
        query: (R, Hkv, G, D), scaled.
        prefix: the output (Hkv, R·G, D) of attention to the prefix, and the logarithm (Hkv, R·G) of
            its summed weights, as :func:`zerogap.engine.part_attention.prefix_part` returns them;
            None without a prefix.
        question: keys and values (Q, Hkv, S, D) of the questions.
        own: keys and values (≥R, Hkv, ≥T, D) of each row's own tokens.
        num_question: (R,) tokens of each row's question; the others are padding.
        num_own: (R,) own tokens of each row, at least one; the others are padding.
        slot: (R,) each row's question, of the Q.

    Returns:
        (R, Hkv, G, D) in the dtype of the queries. Sums are taken in float32.
    """
    from zerogap.engine import gpu_kernels_triton  # loading Triton takes time

    out = torch.empty_like(query, memory_format=torch.contiguous_format)
    with _current_device(query):
        gpu_kernels_triton.attend(
            query.contiguous(), prefix, question, own, num_question, num_own, slot, out
        )
    return out


def rms_norm(hidden: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """Normalise (…, N) by its root mean square and multiply it by the weight (N,)."""
    from zerogap.engine import gpu_kernels_triton  # loading Triton takes time

    out = torch.empty_like(hidden, memory_format=torch.contiguous_format)
    size = hidden.shape[-1]
    with _current_device(hidden):
        gpu_kernels_triton.rms_norm(
            hidden.reshape(-1, size).contiguous(), weight, epsilon, out.view(-1, size)
        )
    return out


def gated_silu(joined: Tensor) -> Tensor:
    """silu(gate) * up (…, N) of both next to each other, (…, 2N) and contiguous."""
    from zerogap.engine import gpu_kernels_triton  # loading Triton takes time

    size = joined.shape[-1] // 2
    out = joined.new_empty(*joined.shape[:-1], size)
    with _current_device(joined):
        gpu_kernels_triton.gated_silu(joined.view(-1, 2 * size), out.view(-1, size))
    return out


def rotate(heads: Tensor, cos: Tensor, sin: Tensor, num_rotated: int) -> None:
    """Apply rotary position embeddings to the first heads, in place.

    Args:
        heads: (B, L, H, D), contiguous.
        cos: (B, L, D), whose two halves belong to the two halves of a head.
        sin: (B, L, D).
        num_rotated: heads to rotate; those behind them stay as they are.
    """
    from zerogap.engine import gpu_kernels_triton  # loading Triton takes time

    *_, num_heads, size = heads.shape
    with _current_device(heads):
        gpu_kernels_triton.rotate(
            heads.view(-1, num_heads, size),
            cos.reshape(-1, size).contiguous(),
            sin.reshape(-1, size).contiguous(),
            num_rotated,
        )
