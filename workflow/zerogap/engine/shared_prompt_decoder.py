"""A model that decodes many rows behind one shared prompt."""

import contextlib
import functools
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from zerogap.engine import kernels
from zerogap.engine.decoder import Capacity, IntArray, to_device
from zerogap.engine.hf_decoder import cache_argument
from zerogap.engine.kernels.cuda_graphs import Capture, CudaGraphCapture, CudaGraphRunner
from zerogap.engine.kernels.fused_layers import FusedLayers
from zerogap.engine.prompt_cache import PromptCache
from zerogap.engine.shared_prompt_attention import ATTENTION, PromptPass, StepPass, step_plan


class _PassEnds(Exception):  # noqa: N818, a way to end a pass and not an error
    """Nothing behind this module is needed from the forward pass."""


def end_pass(*_: object) -> None:
    """End forward passes before the module that has this hook, in a decoder without logits."""
    raise _PassEnds


class SharedPromptDecoder:
    """A causal language model with a :class:`~zerogap.engine.prompt_cache.PromptCache`.

    Args:
        model: it is put into evaluation mode, and its attention is switched to that of
            :mod:`zerogap.engine.shared_prompt_attention`.
        with_logits: False for a model of which only activations are needed; its logits are then
            tensors (R, 0), and its passes may end early (:func:`end_pass`).
        make_capture: makes what captures the steps of a batch; by default CUDA graphs on a GPU and
            nothing elsewhere.
    """

    single_prompt_only = False

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        with_logits: bool = True,
        make_capture: Callable[[], Capture] | None = None,
    ) -> None:
        model.eval()
        model.set_attn_implementation(ATTENTION)
        self.model = model
        self._cache_argument = cache_argument(model)
        self._fused_layers = FusedLayers(model)
        self.device: torch.device = model.device
        self.with_logits = with_logits
        if make_capture is None and self.device.type == "cuda" and kernels.is_on("graphs"):
            make_capture = functools.partial(CudaGraphCapture, self.device)
        self._make_capture = make_capture
        self._new_cache(None)

    @property
    def prefers_sorted_rows(self) -> bool:
        """Whether a layer takes chunks of rows, each as wide as the chunk's longest row."""
        layers = self._cache.layers.values()
        return self.device.type == "cpu" and not all(layer.step_kernel for layer in layers)

    def reserve(self, capacity: Capacity | None) -> None:
        """Prepare for batches up to this capacity; None: for any, in storage that grows.

        With a capacity, steps are captured and replayed where the device supports it. A capacity
        other than the previous one releases what was allocated for that.
        """
        if capacity is None or capacity != self._capacity:
            self._new_cache(capacity)

    def _new_cache(self, capacity: Capacity | None) -> None:
        self._graphs = None  # they hold addresses of the old cache
        self._capacity = capacity
        if self._make_capture is None:
            self._cache = PromptCache(self.device, mapped=capacity)
            return
        self._cache = PromptCache(self.device, capacity)
        if capacity is not None:
            capture = self._make_capture()
            self._graphs = CudaGraphRunner(self._forward_step, capture, capacity.max_rows)

    @torch.inference_mode()
    def prefill_prefix(self, token_ids: list[int]) -> None:
        """Compute the shared prefix, which may be empty, and drop all rows."""
        if not self._cache.is_reusable(len(token_ids)):
            self._new_cache(self._capacity)
        prefix_pass = PromptPass(self._cache, [len(token_ids)], is_prefix=True)
        if token_ids:
            tokens = torch.tensor([token_ids], device=self.device)
            self._forward(tokens, prefix_pass, logits_at=[-1])

    @torch.inference_mode()
    def prefill_prompts(self, prompts: list[list[int]]) -> Tensor:
        """Add one row per prompt (its tokens after the prefix); returns their logits (q, V).

        Equal prompts are computed and stored once, unless storage is reserved for each.
        """
        distinct, rows = prompts, np.arange(len(prompts))
        if self._cache.capacity is None:
            distinct = [list(token_ids) for token_ids in dict.fromkeys(map(tuple, prompts))]
            rows = np.array([distinct.index(token_ids) for token_ids in prompts])
        lengths = [len(token_ids) for token_ids in distinct]
        longest = max(lengths)
        padded = [token_ids + [0] * (longest - len(token_ids)) for token_ids in distinct]
        question_pass = PromptPass(self._cache, lengths)
        # Logits only at positions where some prompt ends, not for all (q, S) tokens.
        ends, end_index = np.unique(np.array(lengths) - 1, return_inverse=True)
        tokens = torch.tensor(padded, device=self.device)
        logits = self._forward(tokens, question_pass, logits_at=ends.tolist())
        self._cache.add_questions(lengths, question_pass.prefilled, rows)
        at = (to_device(index, self.device) for index in (rows, end_index[rows]))
        return logits[*at]

    @torch.inference_mode()
    def step(self, tokens: Tensor) -> Tensor:
        """Feed one token to every row (R,); returns the logits (R, V) of the next token.

        The next step may overwrite them.
        """
        width, arrays = step_plan(self._cache)
        padded = nn.functional.pad(tokens, (0, len(arrays[0]) - len(tokens)))
        plan = [to_device(array, self.device) for array in arrays]
        logits = (self._graphs or self._forward_step)(width, padded, *plan)
        self._cache.end_step()
        return logits[: len(tokens)]

    def _forward_step(self, width: int, tokens: Tensor, *plan: Tensor) -> Tensor:
        """A step that depends on nothing but the cache's tensors and these arguments.

        This is the function that is captured: it must not read other numbers from the host.
        """
        return self._forward(tokens[:, None], StepPass(self._cache, width, *plan))[:, -1]

    @torch.inference_mode()
    def reorder(self, rows: IntArray) -> None:
        """Continue with rows (R',) of the current ones, in that order; a row may occur twice."""
        self._cache.reorder(rows)

    def kv_bytes(self) -> int:
        """Bytes of the prefix's keys and values."""
        layers = self._cache.layers.values()
        return sum(part.nbytes for layer in layers for part in layer.prefix)

    def _forward(
        self,
        tokens: Tensor,
        attention_pass: PromptPass | StepPass,
        logits_at: list[int] | None = None,
    ) -> Tensor:
        """Logits (B, L', V) of tokens (B, L), at the given positions or at all."""
        inputs = {
            "input_ids": tokens,
            "position_ids": attention_pass.positions.expand(len(tokens), -1),
            self._cache_argument: attention_pass,
            "use_cache": True,
            "attention_pass": attention_pass,
        }
        if logits_at is not None and self.with_logits:
            inputs["logits_to_keep"] = torch.tensor(logits_at, device=self.device)
        is_step = isinstance(attention_pass, StepPass) and self._graphs is None
        with self._fused_layers.applied(is_step=is_step):
            if self.with_logits:
                logits: Tensor = self.model(**inputs).logits
                return logits
            with contextlib.suppress(_PassEnds):
                self.model.base_model(**inputs)
        return torch.empty(*tokens.shape, 0, device=self.device)
