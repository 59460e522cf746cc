"""Compiled kernels and captured steps: what there is, and which of it the engine uses where.

Every entry computes what some lines of plain PyTorch compute, up to rounding, and can be switched
off: `ZEROGAP_WITHOUT_KERNELS=draw,layers` for some and `all` for all, for debugging or where a
compiler does not work. Then, and for every other dtype and device, the plain lines are used.

======== ======================== ============================== ==================================
switch   functions                instead of                     used for
======== ======================== ============================== ==================================
attend   attend_step              products and one softmax over  a step's attention: a CPU in
                                  all keys, in                   float32 and bfloat16 (numba), a GPU
                                  `StepPass._attend_by_products` from Ampere on (Triton); no sliding
                                                                 window
parts    part_attention,          PyTorch's flash attention      prefix and questions in bfloat16,
         prefix_part                                             AVX-512-bf16 without AMX
products FusedLayers: product,    `nn.Linear`                    Llama's weights in bfloat16,
         gated_product                                           AVX-512-bf16 without AMX
layers   FusedLayers: rms_norm,   the modules of `transformers`  Llama's layers in bfloat16, on a
         gated_silu, rotate                                      CPU or a GPU
draw     draw                     `drawing.draw`                 a CPU in float32 and bfloat16,
                                                                 without top-p
graphs   CudaGraphRunner          launching every operation      steps on a GPU
======== ======================== ============================== ==================================

Gains, end to end unless stated otherwise ("forced": SmolLM2-135M, 20 questions × 50 samples of 64
tokens; "natural": 8 questions, natural endings; two cores; docs/engine.md has the conditions):

- all: steps on AVX-512-bf16 1.9 to 2.0 × as fast (SmolLM2), 2.3 to 2.6 × (toy Llama); in float32
  with AVX2 1.2 × (toy Llama).
- attend: 1.13 × in float32 with AVX2 (toy Llama). With `layers` on an H200, steps of Llama-2-7B's
  shape are 1.8 × as fast with 8 rows and 1.3 × with 640.
- parts: AVX-512-bf16 1.33 × (forced) and 1.2 × (natural). Not used with AMX.
- products: AVX-512-bf16 1.13 × (forced) and 1.2 × (natural), computed from the layers' speeds; the
  bits of a response then do not depend on the batch. Not used with AMX.
- layers: with AMX 1.16 × (forced, 10 questions), prefetching of keys and values in `attend`
  included.
- draw: AVX-512-bf16 1.15 to 1.2 × (steps of the toy Llama), 1.04 × (of SmolLM2).
- graphs: a step of Llama-2-7B's shape with 8 rows took 41 to 53 ms on an H200 without, 9.5 with.
"""

import os
from functools import cache
from typing import Literal

import torch
from torch import Tensor

LARGEST_GPU_HEAD = 256  # values per head; a kernel keeps a head in registers


def is_on(switch: str) -> bool:
    """Whether a kernel of the table above is not switched off."""
    off = os.environ.get("ZEROGAP_WITHOUT_KERNELS")
    return not off or not {switch, "all"} & set(off.split(","))


@cache
def has_dot_products() -> bool:
    """Whether this CPU multiplies pairs of bfloat16 values, and has no tile instructions (AMX).

    With these, which the kernels do not use, PyTorch's own products and attention are taken.
    """
    capabilities = torch.cpu.get_capabilities()
    return bool(capabilities.get("avx512_bf16")) and not capabilities.get("amx_bf16")


def draws(logits: Tensor) -> bool:
    """Whether :func:`draw` takes these logits."""
    return _fits_cpu(logits) and is_on("draw")


def attends_to_parts(query: Tensor) -> bool:
    """Whether attention to prefix and questions is compiled for these queries."""
    return query.dtype == torch.bfloat16 and _has_products(query) and is_on("parts")


def multiplies(weight: Tensor) -> bool:
    """Whether products with this weight are compiled, where a layer allows it."""
    return weight.dtype == torch.bfloat16 and _has_products(weight) and is_on("products")


def fuses(weight: Tensor) -> bool:
    """Whether layers with this weight are fused, where their kind allows it."""
    is_bfloat16 = weight.dtype == torch.bfloat16
    return is_bfloat16 and (_fits_cpu(weight) or _fits_gpu(weight)) and is_on("layers")


def step_kernel(query: Tensor, prefix_key: Tensor) -> Literal["cpu", "gpu"] | None:
    """Which kernel computes :func:`attend_step` in a layer that attends to all tokens, if any.

    It depends on queries (B, Hq, L, D) of a pass over prompts and on the prefix's keys (Hkv, P, D).
    """
    if not is_on("attend"):
        return None
    if _fits_cpu(query):
        return "cpu"
    fits = query.shape[-1] <= LARGEST_GPU_HEAD and _fits_gpu(query)
    return "gpu" if fits and (not prefix_key.shape[1] or _has_flash(query, prefix_key)) else None


def _fits_cpu(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu" and tensor.dtype in (torch.bfloat16, torch.float32)


def _has_products(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu" and has_dot_products()


def _fits_gpu(tensor: Tensor) -> bool:
    if not tensor.is_cuda or tensor.dtype not in (torch.bfloat16, torch.float16, torch.float32):
        return False
    from zerogap.engine.kernels import gpu_triton

    return gpu_triton.works(tensor.device)


def _has_flash(query: Tensor, key: Tensor) -> bool:
    """Whether the GPU has flash attention for query (B, Hq, L, D) and key (Hkv, P, D)."""
    heads, first_key = query[:1, :, :1].flatten(0, 2)[None, None], key[None, :1]
    params = torch.backends.cuda.SDPAParams(heads, first_key, first_key, None, 0.0, False, False)
    return query.shape[-1] % 8 == 0 and torch.backends.cuda.can_use_flash_attention(params)
