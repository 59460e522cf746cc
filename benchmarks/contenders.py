"""The engines that `benchmarks/engines.py` compares.

Each is a function that loads the model and returns another one, which draws all responses and
returns the number of their tokens. Imports are local, because vLLM has an environment of its own.
"""

import copy
import dataclasses
import os
import time
from collections.abc import Callable
from typing import Any

import common

TEMPERATURE = 0.7
RAILCAP_N = 4
STOP = "Q:"  # the next question, where responses end naturally
OPENVINO_CACHE_GB = 4  # of keys and values, as vLLM's

Draw = Callable[[], int]


@dataclasses.dataclass(frozen=True)
class Work:
    """What a contender has to do.

    Attributes:
        folder: of model and tokenizer.
        dtype: of the weights.
        prompts: complete prompts.
        samples: responses per prompt.
        tokens: the longest response; the length of all of them unless `natural`.
        natural: whether responses end at the end token or the next question.
        strategy: "identity", "railcap" or, in our engine only, "lne_blocking".
        rows: the batch size; None leaves it to the engine.
        compiled: whether vLLM compiles the model, which takes minutes on a CPU.
    """

    folder: str
    dtype: str
    prompts: list[Any]
    samples: int
    tokens: int
    natural: bool
    strategy: str
    rows: int | None
    compiled: bool = False


def measure(engine: str, prompts: str, questions: int, **work: Any) -> dict[str, Any]:
    """Tokens per second, peak memory and seconds to start of one of :data:`ENGINES`.

    The prompts are the first of a file of :func:`common.write_prompts`.
    """
    asked = common.read_prompts(prompts, questions)
    start = time.perf_counter()
    draw = ENGINES[engine](Work(prompts=asked, **work))
    startup = time.perf_counter() - start
    if common.default_device() == "cuda":
        draw()  # our steps are captured in the first draw, vLLM's while it starts
    begin = time.perf_counter()
    num_tokens = draw()
    common.synchronize(common.default_device())
    seconds = time.perf_counter() - begin
    return {
        "speed": num_tokens / seconds,
        "peak": common.peak_bytes(common.default_device()),
        "startup": startup,
        "questions": questions,
        "prompt": len(asked[0].token_ids),
    }


def zerogap(work: Work) -> Draw:
    """The sampler of this package."""
    from zerogap import LNEBlocking, RailCap
    from zerogap.engine import loading
    from zerogap.engine.decoder import SamplingParams
    from zerogap.engine.sampler import sample

    decoder = loading.decoder(_model(work))
    tokenizer: Any = common.tokenizer(work.folder)
    if not work.natural:
        tokenizer = common.EndlessTokenizer(work.folder)
    fixed: dict[str, Any] = {
        "max_new_tokens": work.tokens,
        "stop": [STOP] if work.natural else [],
        "batch_size": work.rows or "auto",
    }
    edit = None
    if work.strategy != "identity":
        context = common.context(decoder, work.prompts, tokenizer, **fixed)
        strategy = RailCap(RAILCAP_N) if work.strategy == "railcap" else LNEBlocking()
        edit = strategy.prepare(context).edit_logits
    sampling = SamplingParams(num_samples=work.samples, temperature=TEMPERATURE, **fixed)

    # The first steps compile kernels that are not cached yet. vLLM does so while it starts, too.
    few_tokens = dataclasses.replace(sampling, max_new_tokens=2)
    list(sample(decoder, work.prompts, tokenizer, few_tokens, edit, indices=[0]))

    def draw() -> int:
        responses = sample(decoder, work.prompts, tokenizer, sampling, edit)
        return sum(len(response.token_ids) for _, drawn in responses for response in drawn)

    return draw


def vllm(work: Work) -> Draw:
    """The engine vLLM, with prefix caching; Identity and RailCap."""
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # its memory is that of this process
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "4")
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")  # as in the jobs of the workflow
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")  # the result is the last line printed
    import torch

    from vllm import LLM, SamplingParams

    has_strategy = work.strategy == "railcap"
    engine = LLM(
        work.folder,
        dtype=work.dtype,
        max_model_len=2048,
        max_num_seqs=work.rows,
        enforce_eager=not (work.compiled or torch.cuda.is_available()),
        async_scheduling=False if has_strategy else None,  # they exclude each other
    )
    prompts = [{"prompt_token_ids": prompt.token_ids} for prompt in work.prompts]
    fixed: dict[str, Any] = {"max_tokens": work.tokens, "ignore_eos": not work.natural}
    fixed["stop"] = [STOP] if work.natural else None
    extra_args: list[Any] = [None] * len(prompts)
    if has_strategy:
        params = SamplingParams(temperature=0, **fixed)
        greedy = engine.generate(prompts, params, use_tqdm=False)
        extra_args = [
            {"railcap": {"trajectory": list(request.outputs[0].token_ids), "n": RAILCAP_N}}
            for request in greedy
        ]
    sampling = [
        SamplingParams(n=work.samples, temperature=TEMPERATURE, extra_args=arguments, **fixed)
        for arguments in extra_args
    ]

    def draw() -> int:
        requests = engine.generate(prompts, sampling, use_tqdm=False)
        return sum(len(output.token_ids) for request in requests for output in request.outputs)

    return draw


def openvino(work: Work) -> Draw:
    """OpenVINO GenAI with prefix caching; `work.folder` is a GGUF file."""
    import numpy as np
    import openvino
    from openvino_genai import ContinuousBatchingPipeline, GenerationConfig, SchedulerConfig

    scheduler = SchedulerConfig()
    scheduler.max_num_seqs = work.rows or scheduler.max_num_seqs
    scheduler.enable_prefix_caching = True
    scheduler.cache_size = OPENVINO_CACHE_GB
    precision = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}[work.dtype]
    engine = ContinuousBatchingPipeline(
        work.folder, scheduler, "CPU", {"INFERENCE_PRECISION_HINT": precision}
    )
    config = GenerationConfig(
        do_sample=True,
        temperature=TEMPERATURE,
        top_k=2**31,  # all tokens
        num_return_sequences=work.samples,
        max_new_tokens=work.tokens,
        ignore_eos=not work.natural,
        stop_strings={STOP} if work.natural else set(),
    )
    prompts = [openvino.Tensor(np.array([prompt.token_ids])) for prompt in work.prompts]

    def draw() -> int:
        results = engine.generate(prompts, [config] * len(prompts))
        return sum(len(token_ids) for result in results for token_ids in result.m_generation_ids)

    return draw


def generate(work: Work) -> Draw:
    """`generate`, one question at a time, its best batch; responses have the full length."""
    import torch

    model = _model(work)

    def draw() -> int:
        num_tokens = 0
        for prompt in work.prompts:
            ids = torch.tensor([prompt.token_ids], device=model.device)
            out = model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                num_return_sequences=work.samples,
                **_generation_options(work),
            )
            num_tokens += out[:, ids.shape[1] :].numel()
        return num_tokens

    return draw


def generate_prefilled(work: Work) -> Draw:
    """`generate`, with the few-shot prefix computed once and a question once for its samples."""
    import torch
    from transformers import DynamicCache

    from zerogap.engine.sampler import shared_prefix_length

    model, prompts = _model(work), work.prompts
    only_one = len(prompts) == 1  # the whole prompt would be its prefix
    prefix = len(prompts[0].token_ids) - 60 if only_one else shared_prefix_length(prompts)

    @torch.inference_mode()
    def draw() -> int:
        num_tokens = 0
        prefix_cache = DynamicCache(config=model.config)
        prefix_ids = torch.tensor([prompts[0].token_ids[:prefix]], device=model.device)
        model(prefix_ids, past_key_values=prefix_cache)
        for prompt in prompts:
            ids = torch.tensor([prompt.token_ids], device=model.device)
            cache = copy.deepcopy(prefix_cache)
            model(ids[:, prefix:-1], past_key_values=cache)
            cache.batch_repeat_interleave(work.samples)
            rows = ids.repeat(work.samples, 1)
            out = model.generate(
                rows,
                attention_mask=torch.ones_like(rows),
                past_key_values=cache,
                **_generation_options(work),
            )
            num_tokens += out[:, ids.shape[1] :].numel()
        return num_tokens

    return draw


ENGINES: dict[str, Callable[[Work], Draw]] = {
    function.__name__: function
    for function in (zerogap, vllm, openvino, generate, generate_prefilled)
}


def _model(work: Work) -> Any:
    return common.model(work.folder, work.dtype, common.default_device())


def _generation_options(work: Work) -> dict[str, Any]:
    return {
        "do_sample": True, "temperature": TEMPERATURE, "top_k": 0, "pad_token_id": 0,
        "eos_token_id": None, "max_new_tokens": work.tokens, "min_new_tokens": work.tokens,
    }  # fmt: skip
