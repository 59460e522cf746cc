"""Load a job's model into the engine that the job decodes with, ours or vLLM."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zerogap.engine import loading
from zerogap.engine.decoder import Response, SamplingParams
from zerogap.errors import InputError
from zerogap.sampling import vllm_sampler
from zerogap.sampling.engines import chosen_vllm
from zerogap.sampling.greedy import decode_greedily
from zerogap.sampling.inputs import JobInputs
from zerogap.sampling.ranks import step_entropies
from zerogap.sampling.samplers import EngineSampler, Sampler, engine_identity
from zerogap.sampling.vllm_sampler import VLLMSampler, request_arguments
from zerogap.strategies.base import Context, Strategy


@contextlib.contextmanager
def opened_sampler(
    engine: str,
    model: Path,
    dtype: str,
    inputs: JobInputs,
    sampling: SamplingParams,
    strategy: Strategy,
    context: Context,
) -> Iterator[Sampler]:
    """The sampler of one cell, with its model loaded while the block runs.

    Args:
        engine: "zerogap", "vllm" or "auto".
        model: a model folder.
        dtype: "float32", "bfloat16", …
        inputs: the prompts.
        sampling: how to draw.
        strategy: the cell's.
        context: what the strategy may know.

    Raises:
        InputError: the engine cannot be used, or does not run the strategy or the model.
    """
    if chosen_vllm(engine) is not None:
        arguments = request_arguments(strategy, context)
        with vllm_sampler.started(model, dtype, inputs.prompts, sampling.max_new_tokens) as llm:
            yield VLLMSampler(llm, inputs.prompts, inputs.tokenizer, sampling, arguments)
        return
    intervention = strategy.prepare(context)
    if intervention.filter_responses is not None:
        raise InputError(
            f"strategies: {type(strategy).__name__} filters the responses of another strategy; "
            "name that in filter_of"
        )
    with intervention.applied_to(loading.decoder(loading.load(model, dtype))) as decoder:
        yield EngineSampler(
            decoder, inputs.prompts, inputs.tokenizer, sampling, intervention.edit_logits
        )


def decode_trajectories(
    engine: str, model: Path, dtype: str, inputs: JobInputs, sampling: SamplingParams
) -> tuple[list[Response], dict[str, Any]]:
    """Each prompt's greedy trajectory with its entropies, and the identity of what decoded it.

    vLLM gives no entropies. They are computed afterwards, from one pass over each trajectory.

    Args:
        engine: "zerogap", "vllm" or "auto".
        model: a model folder.
        dtype: "float32", "bfloat16", …
        inputs: the prompts.
        sampling: with temperature 0.

    Raises:
        InputError: the engine cannot be used, or does not run the model.
    """
    prompts = inputs.prompts
    if chosen_vllm(engine) is None:
        decoder = loading.decoder(loading.load(model, dtype))
        trajectories, _ = decode_greedily(decoder, prompts, inputs.tokenizer, sampling)
        return trajectories, engine_identity(decoder)
    with vllm_sampler.started(model, dtype, prompts, sampling.max_new_tokens) as llm:
        sampler = VLLMSampler(llm, prompts, inputs.tokenizer, sampling, [None] * len(prompts))
        drawn = dict(sampler.draw(range(len(prompts)), sampler.batch_size()))
    net = loading.load(model, dtype)
    trajectories = [
        dataclasses.replace(
            drawn[index][0],
            entropy=step_entropies(net, prompt.token_ids, drawn[index][0].token_ids),
        )
        for index, prompt in enumerate(prompts)
    ]
    return trajectories, sampler.identity
