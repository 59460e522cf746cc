"""`zerogap.sample`: sample many responses per prompt from a model in memory."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pandas as pd
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from zerogap.engine import generation_config, loading, memory
from zerogap.engine.decoder import Decoder
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.io.resume import resumable_parts
from zerogap.sampling import arguments
from zerogap.sampling.cell import EngineSampler, sample_questions
from zerogap.sampling.identity import call_identity, evaluation_mode, job_settings
from zerogap.sampling.tables import solve_counts
from zerogap.strategies.base import Context, Strategy, prepared
from zerogap.strategies.filtering import filter_samples
from zerogap.strategies.identity import Identity


def sample(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[str] | Mapping[str, str],
    num_samples: int = 50,
    strategy: Strategy | None = None,
    *,
    gold: Sequence[str | float] | Mapping[str, str | float] | None = None,
    extraction: str = "numeric",
    temperature: float = 0.7,
    top_p: float = 1.0,
    max_new_tokens: int = 256,
    stop: str | Sequence[str] = (),
    seed: int = 0,
    batch_invariant: bool = False,
    batch_size: int | Literal["auto"] = "auto",
    output: str | Path | None = None,
    base_model: str | Path | None = None,
    neurons: str | Path | None = None,
) -> pd.DataFrame:
    """Sample `num_samples` responses to every prompt, under a mitigation strategy if one is given.

    The random draws of a response depend on the seed, the prompt's id and the sample's id alone;
    other prompts, another batch size or another strategy leave them as they are.

    Args:
        model: any `transformers` causal language model.
        tokenizer: the model's tokenizer.
        prompts: complete prompts. Their ids are the mapping's keys, or "0", "1", … in a sequence.
        num_samples: responses per prompt.
        strategy: for example `RailCap(n=4)`. The greedy trajectories that it needs are decoded
            first.
        gold: the gold answers, with the same keys or in the same order as the prompts. Without
            them `correct` is empty.
        extraction: which answer a response gives (:mod:`zerogap.data.extraction`).
        temperature: sampling temperature.
        top_p: nucleus sampling; 1 samples from all tokens.
        max_new_tokens: the longest response, in tokens.
        stop: one or several strings that end a response, in addition to the model's end tokens.
        seed: seed of the draws.
        batch_invariant: see :class:`zerogap.engine.decoder.SamplingParams`.
        batch_size: samples decoded together; "auto" uses as many as fit into memory.
        output: a Parquet file to write. An interrupted call resumes when it is repeated with the
            same models, strategy, prompts, settings and library versions
            (:mod:`zerogap.sampling.identity`). A model with hooks cannot be resumed.
        base_model: folder of the base model, for :class:`zerogap.strategies.shortcut.Shortcut`.
        neurons: its `neurons` file.

    Returns:
        One row per response, with the columns of the `samples` table (:mod:`zerogap.io.parquet`).

    Raises:
        InputError: an argument is invalid, a prompt exceeds the model's context, a stop string
            cannot occur, the logits are NaN; or, with `output`, it cannot be written, another
            process is writing it, the strategy's parameters cannot be serialised or the model has
            hooks.
    """
    arguments.check_model(model, tokenizer)
    model = getattr(model, "_orig_mod", model)  # torch.compile's: the engine has its own kernels
    strategy = Identity() if strategy is None else arguments.checked_strategy(strategy)
    base_model, neurons, target = arguments.paths(base_model, neurons, output)
    sampling = arguments.sampling_params(
        temperature=temperature,
        top_p=top_p,
        max_new_tokens=max_new_tokens,
        stop=stop,
        num_samples=num_samples,
        seed=seed,
        batch_size=batch_size,
        batch_invariant=batch_invariant,
    )
    inputs = arguments.job_inputs(model, tokenizer, prompts, gold, extraction, sampling)
    generation_config.note_ignored(model.generation_config, model.name_or_path or "the model")
    fixed = call_identity(model, tokenizer, strategy, sampling) if target else {}
    with contextlib.ExitStack() as stack:
        if torch.get_default_device().type != "cpu":  # as a script may have set it
            stack.enter_context(torch.device("cpu"))
        decoder = stack.enter_context(_decoder_of(model))
        journal = None
        if target:  # the trajectories follow from these, up to rounding, and are kept as well
            given = Context([], [], base_model=base_model, neurons=neurons)
            settings = job_settings(inputs, given, **fixed)
            journal = stack.enter_context(resumable_parts(target, settings))
        context = Context([], [])
        if type(strategy) is not Identity:
            plain = EngineSampler(decoder, inputs, replace(sampling, temperature=0, num_samples=1))
            greedy = sample_questions(
                plain, contract="greedy", journal=journal, label="greedy trajectories"
            )
            context = inputs.context(greedy, base_model, neurons)
        intervention = prepared(strategy, context)
        changed = stack.enter_context(intervention.applied_to(decoder))
        sampler = EngineSampler(changed, inputs, sampling, intervention.edit_logits)
        table = sample_questions(sampler, journal=journal)
        if keep := intervention.filter_responses:
            table = filter_samples(table, greedy, keep)
        if target:
            made_by = provenance(
                sampling=vars(sampling), strategy=repr(strategy), model=model.name_or_path
            )
            if keep and inputs.questions.gold.notna().all():  # questions without responses count
                counts = solve_counts(table, inputs.questions.assign(leaked=False))
                parquet.write(target, counts, "counts", made_by)
            else:
                parquet.write(target, table, "samples", made_by)
    if base_model is not None:
        memory.release()  # its captured steps refer to themselves
    return table


@contextlib.contextmanager
def _decoder_of(model: PreTrainedModel) -> Iterator[Decoder]:
    """A decoder of the model, which then has its own attention and modes again."""
    config, decoder = model.config, None
    parts = {"": config} | {name: getattr(config, name, None) for name in config.sub_configs}
    attention = {name: part._attn_implementation for name, part in parts.items() if part}
    try:
        with evaluation_mode(model):
            decoder = loading.decoder(model)
            yield decoder
    finally:
        if decoder:
            decoder.reserve(None)  # on a GPU it has reserved most of the memory
        model.set_attn_implementation(attention[""])
        config._attn_implementation = attention  # towers may have another than the text decoder
