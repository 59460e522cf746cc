"""Greedy trajectories and responses from vLLM instead of our engine (docs/railcap.md#vllm)."""

import contextlib
import hashlib
import importlib.metadata
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from zerogap.engine.decoder import Prompt, Response, SamplingParams
from zerogap.errors import InputError, first_line
from zerogap.sampling.responses import JobInputs
from zerogap.strategies.base import Context, Strategy
from zerogap.strategies.identity import Identity
from zerogap.strategies.lne_blocking import LNEBlocking, length_normalised_entropy
from zerogap.strategies.railcap import RailCap

_PROCESSORS = "zerogap.integrations.vllm.processors"
_PROCESSORS_GROUP = "vllm.logits_processors"  # entry points


@dataclass(frozen=True)
class VLLMSampler:
    """Responses from vLLM: one request per question, for all of its responses.

    `llm` is vLLM's `LLM` with the model, `arguments` are those of every question's request
    (:func:`request_arguments`).
    """

    llm: Any
    inputs: JobInputs
    sampling: SamplingParams
    arguments: Sequence[dict[str, Any]]

    @property
    def identity(self) -> dict[str, Any]:
        """The engine, its version and the device."""
        import vllm

        return {"engine": f"vllm {vllm.__version__}", "device": _device()}

    def batch_size(self) -> int:
        """How many responses vLLM decodes together at most; the configured size is ours."""
        return int(self.llm.llm_engine.vllm_config.scheduler_config.max_num_seqs)

    def draw(self, indices: Sequence[int], batch_size: int) -> Iterator[tuple[int, list[Response]]]:
        """Yield the index of each of some questions and its responses; vLLM forms the batches."""
        import vllm

        sampling, prompts = self.sampling, [self.inputs.prompts[index] for index in indices]
        params = [
            vllm.SamplingParams(
                n=sampling.num_samples,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                max_tokens=sampling.max_new_tokens,
                stop=sampling.stop,
                stop_token_ids=self.inputs.end_tokens,
                seed=request_seed(sampling.seed, sampling.stream, prompt.question_id),
                extra_args=self.arguments[index] if self.arguments else None,
            )
            for index, prompt in zip(indices, prompts, strict=True)
        ]
        texts = [{"prompt_token_ids": prompt.token_ids} for prompt in prompts]
        requests = self.llm.generate(texts, params, use_tqdm=False)
        for index, request in zip(indices, requests, strict=True):
            yield index, [_response(output) for output in request.outputs]


@contextlib.contextmanager
def started(
    model: Path, dtype: str, prompts: Sequence[Prompt], max_new_tokens: int
) -> Iterator[Any]:
    """An `LLM` with the model while the block runs; its memory is free afterwards.

    Raises:
        InputError: vLLM cannot load the model.
    """
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "4")  # GiB; only a CPU uses these two
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")  # jobs would share their cores
    import vllm

    is_gpu = _device() == "cuda"
    options: dict[str, Any] = {}
    if not importlib.metadata.entry_points(group=_PROCESSORS_GROUP, name="zerogap_railcap"):
        names = ("RailCapProcessor", "LNEBlockingProcessor")
        options["logits_processors"] = [f"{_PROCESSORS}:{name}" for name in names]
    try:
        llm = vllm.LLM(
            str(model),
            dtype=dtype,
            max_model_len=max(len(p.token_ids) for p in prompts) + max_new_tokens,
            generation_config="vllm",  # not the model's own defaults
            enable_prefix_caching=True,
            async_scheduling=False,  # needed by the strategies, docs/railcap.md#vllm
            enable_chunked_prefill=is_gpu,  # with seeds it fails on CPUs
            enforce_eager=not is_gpu,  # compiling takes minutes
            **options,
        )
    except Exception as error:  # a model may fail anywhere
        raise InputError(
            f"{model}: vLLM cannot load this model ({first_line(error)}); the lines above say "
            "more. Set decoding.engine: zerogap to decode with our engine"
        ) from error
    try:
        yield llm
    finally:
        llm.llm_engine.engine_core.shutdown()


def request_arguments(strategy: Strategy, context: Context) -> list[dict[str, Any]]:
    """What every question's request tells vLLM about the strategy (`extra_args`); [] if nothing.

    Raises:
        InputError: the strategy has no form for vLLM.
    """
    match strategy:
        case Identity():
            return []
        case RailCap():
            return [
                {"railcap": {"trajectory": trajectory, **vars(strategy)}}
                for trajectory in context.trajectories
            ]
        case LNEBlocking():
            return [
                {"lne_blocking": {"entropy": length_normalised_entropy(entropy), **vars(strategy)}}
                for entropy in context.entropies
            ]
    raise InputError(
        f"strategies: {type(strategy).__name__} does not run in vLLM; set decoding.engine: zerogap"
    )


def request_seed(seed: int, stream: str, question_id: str) -> int:
    """The seed of a question's first response, in [0, 2⁶²); vLLM adds the sample id.

    The strategies of a run share the stream, so their requests for a question share the seed.
    """
    digest = hashlib.blake2b(f"{seed}/{stream}/{question_id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 2


def _response(output: Any) -> Response:
    """One of vLLM's outputs, whose stop reason is None or a token's id after an end token."""
    ended = output.finish_reason == "stop" and not isinstance(output.stop_reason, str)
    return Response(list(output.token_ids), "eos" if ended else output.finish_reason)


def _device() -> str:
    return "cuda" if torch.cuda.device_count() else "cpu"
