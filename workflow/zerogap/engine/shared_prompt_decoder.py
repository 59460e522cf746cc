"""A model decoding many rows behind one shared prompt; see :mod:`zerogap.engine.prompt_cache`."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel

from zerogap.engine.cuda_graphs import CudaGraphRunner, CudaGraphs, Record
from zerogap.engine.decoder import Capacity
from zerogap.engine.memory import to_device
from zerogap.engine.prompt_cache import PromptCache, padded_rows

ATTENTION = "zerogap_shared_prompt"


def _attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float,
    prompt_cache: PromptCache,
    sliding_window: int | None = None,
    **_: object,
) -> tuple[Tensor, None]:
    source = _source(module)
    return prompt_cache.attend(source, query, key, value, scaling, sliding_window), None


def _source(module: torch.nn.Module) -> int:
    """The layer whose parts an attention module reads: its own.

    A layer of Gemma-4 that shares keys reads those of the last layer of its kind that has any.
    """
    if not getattr(module, "is_kv_shared_layer", False):
        return module.layer_idx
    kinds = module.config.layer_types
    own = range(len(kinds) - module.config.num_kv_shared_layers)
    return max(layer for layer in own if kinds[layer] == kinds[module.layer_idx])


# No mask function is registered under this name, so the models build none: `attend` masks.
AttentionInterface.register(ATTENTION, _attention)


class SharedPromptDecoder:
    """A causal language model decoding many rows behind one shared prefix.

    Args:
        model: a Llama, GPT-NeoX or Gemma-4 text model; its attention is switched to
            :data:`ATTENTION` and it is put into evaluation mode.
        with_logits: False for a model whose activations alone are wanted (a donor).
        recorder: makes what records the steps of a batch; CUDA graphs on a GPU, elsewhere None.
    """

    single_prompt_only = False  # whether it takes one question at a time

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        with_logits: bool = True,
        recorder: Callable[[], Record] | None = None,
    ) -> None:
        model.eval()
        model.set_attn_implementation(ATTENTION)
        self.model = model
        self.device = model.device
        self._with_logits = with_logits
        self._cache = PromptCache(self.device)
        self._replays: CudaGraphRunner | None = None
        if recorder is None and self.device.type == "cuda" and with_logits:
            recorder = CudaGraphs
        self._recorder = recorder

    @property
    def preallocates(self) -> bool:
        """Whether :meth:`reserve` takes room; if not, what rows store grows with them."""
        return self._recorder is not None

    def reserve(self, capacity: Capacity | None) -> None:
        """Decode batches of up to this capacity from now on; None: of any, from stores that grow.

        Steps are then recorded and replayed where the device can. Another capacity than the one
        before frees what was taken for that.
        """
        if not self.preallocates:
            capacity = None
        if capacity is None or capacity != self._cache.capacity:
            self._renew(capacity)

    def _renew(self, capacity: Capacity | None) -> None:
        self._replays = None
        self._cache = PromptCache(self.device, capacity)
        if capacity is not None:
            self._replays = CudaGraphRunner(
                self._step, self._recorder(), padded_rows(capacity.max_rows)
            )

    def prefill_prefix(self, token_ids: list[int]) -> None:
        """Compute the shared prefix, if there is one; forgets whatever was decoded before."""
        if not self._cache.is_for(len(token_ids)):
            self._renew(self._cache.capacity)
        positions = self._cache.begin_prefix(len(token_ids))
        if token_ids:
            self._forward(torch.tensor([token_ids], device=self.device), positions, keep=[-1])

    @torch.inference_mode()
    def prefill_prompts(self, questions: list[list[int]]) -> Tensor | None:
        """Prefill questions (token ids after the prefix) and open a row for each, after the others.

        Returns:
            The logits (q, V) after each question's last token, None without logits.
        """
        lengths = [len(tokens) for tokens in questions]
        longest = max(lengths)
        padded = [tokens + [0] * (longest - len(tokens)) for tokens in questions]
        positions = self._cache.begin_questions(longest)
        ends, which = np.unique(np.array(lengths) - 1, return_inverse=True)
        tokens = torch.tensor(padded, device=self.device)
        logits = self._forward(tokens, positions, keep=ends)
        self._cache.add_questions(lengths)
        if logits is None:
            return None
        rows = torch.arange(len(questions), device=self.device)
        return logits[rows, to_device(which, self.device)]

    @torch.inference_mode()
    def step(self, tokens: Tensor) -> Tensor | None:
        """Feed one token to every row (R,); the logits (R, V) for the next."""
        width, plan = self._cache.plan_step()
        inputs = [
            nn.functional.pad(tokens, (0, len(plan[0]) - len(tokens))),
            *(to_device(part, self.device) for part in plan),
        ]
        logits = (self._replays or self._step)(width, *inputs)
        self._cache.end_step()
        return None if logits is None else logits[: len(tokens)]

    def _step(self, width: int, tokens: Tensor, *plan: Tensor) -> Tensor | None:
        """A step from what is on the device alone."""
        positions = self._cache.begin_step(width, *plan)
        logits = self._forward(tokens[:, None], positions, keep=None)
        return None if logits is None else logits[:, -1]

    @torch.inference_mode()
    def reorder(self, rows: np.ndarray) -> None:
        """Go on with the given rows of the present ones, in that order; a row may come twice."""
        self._cache.reorder(rows)

    def kv_bytes(self) -> int:
        """Bytes of the prefix's keys and values."""
        return sum(part.nbytes for layer in self._cache.layers.values() for part in layer.prefix)

    @torch.inference_mode()
    def _forward(
        self, tokens: Tensor, positions: Tensor, keep: np.ndarray | list[int] | None
    ) -> Tensor | None:
        inputs = {
            "input_ids": tokens,
            "position_ids": positions.expand(len(tokens), -1),
            "past_key_values": self._cache,
            "use_cache": True,
            "prompt_cache": self._cache,
        }
        if not self._with_logits:
            self.model.base_model(**inputs)
            return None
        if keep is not None:
            inputs["logits_to_keep"] = torch.as_tensor(keep, device=self.device)
        return self.model(**inputs).logits
