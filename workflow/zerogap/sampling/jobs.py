"""The jobs that decode for the tables of results: one function per script, from files to files.

Every function takes its files as paths and its parameters as plain values, all by keyword.

Files:
    model, contaminated, clean, base_model: model folders.
    questions, greedy, neurons, samples, solve: Parquet tables (:mod:`zerogap.io.parquet`); `greedy`
        is that of the model that is decoded.
    exemplars: the few-shot examples (JSON).
    output: the table to write.

Parameters:
    sampling: the configuration's `sampling` entry, without `num_shards`.
    benchmark: `prompt`, `stop` and `extraction` of the benchmark's configuration entry.
    engine: what decodes, "zerogap" or "vllm".
    strategy: `class` and `parameters` (:func:`zerogap.strategies.base.build`).
    seed: seed of the run.
    metadata: what is stored in the output's provenance (run, model, variant, strategy).

All of them raise InputError if an input is invalid; those that decode also if a prompt exceeds the
model's context. The last line that a job prints says what it made.
"""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from zerogap.data.prompts import PromptTemplate, check_targets
from zerogap.data.questions import Question, questions_digest
from zerogap.engine import loading
from zerogap.engine.decoder import SamplingParams
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.io.digests import folder_digest
from zerogap.io.provenance import provenance
from zerogap.io.resume import resumable_parts
from zerogap.sampling import vllm_sampler
from zerogap.sampling.cell import EngineSampler, sample_questions
from zerogap.sampling.diagnostics import step_entropies
from zerogap.sampling.identity import job_settings, source_digest
from zerogap.sampling.responses import JobInputs, decoding_params, recorded
from zerogap.sampling.tables import solve_counts
from zerogap.strategies import base
from zerogap.strategies.identity import Identity


def decode_greedy(
    *,
    model: Path,
    questions: Path,
    exemplars: Path,
    output: Path,
    sampling: Mapping[str, Any],
    benchmark: Mapping[str, Any],
    metadata: Mapping[str, Any],
    engine: str = "zerogap",
) -> None:
    """Write the `greedy` table: each question's greedy trajectory and the entropy of its steps.

    Raises:
        InputError: the stop strings cut off the trained answers.
    """
    inputs = JobInputs.read(model, questions, exemplars, sampling, benchmark)
    columns = inputs.questions[["question", "rationale", "gold"]]
    asked = [Question(*row) for row in columns.itertuples(index=False, name=None)]
    check_targets(asked, PromptTemplate.of(benchmark["prompt"]), benchmark["stop"], inputs.rule)
    params, nothing = decoding_params(sampling, benchmark), base.Context([], [])
    decoding = engine, model, sampling["dtype"]
    with opened_sampler(*decoding, inputs, params, Identity(), nothing) as sampler:
        table = sample_questions(sampler, contract="greedy")
        identity = sampler.identity
    if engine == "vllm":  # it gives no entropies: one pass over each trajectory computes them
        net = loading.load(model, sampling["dtype"])
        table["entropy"] = [
            step_entropies(net, prompt.token_ids, tokens)
            for prompt, tokens in zip(inputs.prompts, table.token_ids, strict=True)
        ]
    parameters = recorded(sampling, benchmark, metadata, **identity)
    parquet.write(output, table, "greedy", provenance(**parameters))
    print(f"{len(table)} questions, {table.correct.mean():.3f} solved by the greedy response")


def sample_cell(
    *,
    model: Path,
    questions: Path,
    exemplars: Path,
    greedy: Path,
    samples: Path,
    solve: Path,
    strategy: Mapping[str, Any],
    sampling: Mapping[str, Any],
    seed: int,
    stream: str,
    benchmark: Mapping[str, Any],
    metadata: Mapping[str, Any],
    base_model: Path | None = None,
    neurons: Path | None = None,
    shard: tuple[int, int] = (0, 1),
    engine: str = "zerogap",
) -> None:
    """Write the `samples` and `solve` tables of one cell: one model under one strategy.

    An interrupted job resumes when it is run again with the same arguments; the batch size may
    differ. Cells with the same `stream` draw the same random numbers. A `shard` (k, n) samples
    every n-th question, starting from the k-th (counted from 0). Strategies that need the base
    model get `base_model` and `neurons`.

    Raises:
        InputError: see the module; or memory is too small for one question, or another process is
            writing the same output.
    """
    inputs = JobInputs.read(model, questions, exemplars, sampling, benchmark)
    if neurons:
        parquet.check_place(neurons)
    context = inputs.context(parquet.read_of_run(greedy, "greedy"), base_model, neurons)
    params = decoding_params(sampling, benchmark, seed=seed, stream=stream)
    built, asked = base.build(strategy), inputs.questions[shard[0] :: shard[1]]
    decoding = engine, model, sampling["dtype"]
    with opened_sampler(*decoding, inputs, params, built, context) as sampler:
        draws = {"strategy_parameters": strategy, "seed": seed, "stream": stream}
        draws |= {"question_digest": questions_digest(inputs.questions)}
        parameters = recorded(sampling, benchmark, metadata, **draws, **sampler.identity)
        digests = {"models": [folder_digest(model)], "code": source_digest(type(built))}
        settings = job_settings(inputs, context, **parameters, **digests)
        with resumable_parts(samples, settings) as journal:
            table = sample_questions(sampler, journal=journal, indices=list(asked.index))
            counts, made_by = solve_counts(table, asked), provenance(**parameters)
            parquet.write(samples, table, "samples", made_by)
            parquet.write(solve, counts, "solve", made_by)
    print(f"{len(table)} responses, {table.correct.mean():.3f} correct")


@contextlib.contextmanager
def opened_sampler(
    engine: str,
    model: Path,
    dtype: str,
    inputs: JobInputs,
    params: SamplingParams,
    strategy: base.Strategy,
    context: base.Context,
) -> Iterator[EngineSampler | vllm_sampler.VLLMSampler]:
    """The sampler of one cell, with its model loaded while the block runs.

    Raises:
        InputError: the engine cannot be used, or does not run the strategy or the model.
    """
    if engine == "vllm":
        arguments = vllm_sampler.request_arguments(strategy, context)
        with vllm_sampler.started(model, dtype, inputs.prompts, params.max_new_tokens) as llm:
            yield vllm_sampler.VLLMSampler(llm, inputs, params, arguments)
        return
    intervention = base.prepared(strategy, context)
    if intervention.filter_responses is not None:
        raise InputError(
            f"strategies: {type(strategy).__name__} filters the responses of another strategy; "
            "name that in filter_of"
        )
    with intervention.applied_to(loading.decoder(loading.load(model, dtype))) as decoder:
        yield EngineSampler(decoder, inputs, params, intervention.edit_logits)
