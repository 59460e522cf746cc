"""The sampling jobs that load a model: one function per script, from files to files.

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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from zerogap.data.extraction import extraction_rule
from zerogap.data.token_kinds import token_kinds
from zerogap.engine import loading
from zerogap.engine.decoder import Prompt, SamplingParams
from zerogap.io import parquet
from zerogap.io.digests import folder_digest
from zerogap.io.provenance import provenance
from zerogap.io.resume import resumable_parts
from zerogap.sampling.cell import sample_questions
from zerogap.sampling.identity import job_settings, source_digest
from zerogap.sampling.ranks import step_entropies, token_ranks
from zerogap.sampling.recovery import force_runner_up, forced_steps
from zerogap.sampling.responses import JobInputs
from zerogap.sampling.samplers import EngineSampler, Sampler, engine_identity, opened_sampler
from zerogap.sampling.tables import solve_counts
from zerogap.strategies import base
from zerogap.strategies.identity import Identity

RECOVERY_STREAM = "recovery"


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
    """Write the `greedy` table: each question's greedy trajectory and the entropy of its steps."""
    inputs = JobInputs.read(model, questions, exemplars, sampling, benchmark)
    params, nothing = decoding_params(sampling, benchmark), base.Context([], [])
    with opened_sampler(
        engine, model, sampling["dtype"], inputs, params, Identity(), nothing
    ) as sampler:
        rule = extraction_rule(benchmark["extraction"])
        table = sample_questions(sampler, list(inputs.questions.gold), rule, contract="greedy")
        identity = sampler.identity
    if engine == "vllm":  # it gives no entropies: one pass over each trajectory computes them
        net = loading.load(model, sampling["dtype"])
        table["entropy"] = [
            step_entropies(net, prompt.token_ids, tokens)
            for prompt, tokens in zip(inputs.prompts, table.token_ids, strict=True)
        ]
    made_by = provenance(**metadata, sampling=recorded(sampling), **benchmark, **identity)
    parquet.write(output, table, "greedy", made_by)
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
    parameters = {
        **metadata,
        **benchmark,
        "strategy_parameters": strategy,
        "seed": seed,
        "stream": stream,
        "sampling": recorded(sampling),
    }
    start, step = shard
    indices = range(start, len(inputs.questions), step)
    params = decoding_params(sampling, benchmark, seed=seed, stream=stream)
    built = base.build(strategy)
    unrecorded = {"models": [folder_digest(model)], "code": source_digest(type(built))}
    with (
        opened_sampler(engine, model, sampling["dtype"], inputs, params, built, context) as sampler,
        _sampled(sampler, inputs, context, parameters, unrecorded, samples, indices) as (
            table,
            made_by,
        ),
    ):
        counts = solve_counts(table, inputs.questions.iloc[list(indices)])
        parquet.write(samples, table, "samples", made_by)
        parquet.write(solve, counts, "solve", made_by)
    print(f"{len(table)} responses, {table.correct.mean():.3f} correct")


def rank_clean_tokens(
    *,
    model: Path,
    questions: Path,
    exemplars: Path,
    clean_greedy: Path,
    output: Path,
    steps: int,
    sampling: Mapping[str, Any],
    benchmark: Mapping[str, Any],
    metadata: Mapping[str, Any],
) -> None:
    """Write the `ranks` table: the clean model's tokens under the contaminated `model`.

    The first `steps` tokens of each trajectory in `clean_greedy` are ranked.
    """
    inputs = JobInputs.read(
        model, questions, exemplars, {**sampling, "max_new_tokens": steps}, benchmark
    )
    trajectories = parquet.read_of_run(clean_greedy, "greedy").set_index("question_id").token_ids
    net = loading.load(model, sampling["dtype"])
    rows = []
    for prompt, leaked in zip(inputs.prompts, inputs.questions.leaked, strict=True):
        tokens = list(map(int, trajectories[prompt.question_id]))[:steps]
        ranks = token_ranks(net, prompt.token_ids, tokens)
        rows += [
            (prompt.question_id, leaked, step, token, rank)
            for step, (token, rank) in enumerate(zip(tokens, ranks, strict=True), start=1)
        ]
    table = pd.DataFrame(rows, columns=parquet.CONTRACTS["ranks"].names)
    made_by = provenance(
        **metadata, **benchmark, sampling=recorded(sampling), steps=steps, **engine_identity(net)
    )
    parquet.write(output, table, "ranks", made_by)
    num_different = int((table["rank"] > 1).sum())
    print(f"the two models disagree at {num_different} of {len(table)} steps")


def measure_recovery(
    *,
    model: Path,
    questions: Path,
    exemplars: Path,
    greedy: Path,
    output: Path,
    sampling: Mapping[str, Any],
    seed: int,
    benchmark: Mapping[str, Any],
    metadata: Mapping[str, Any],
) -> None:
    """Write the `recovery` table: responses that take the runner-up at one random step.

    `sampling.num_samples` is the number of responses per question; each has a step of its own. An
    interrupted job resumes.
    """
    inputs = JobInputs.read(model, questions, exemplars, sampling, benchmark)
    context = inputs.context(parquet.read_of_run(greedy, "greedy"))
    kind = token_kinds(inputs.tokenizer.decode, inputs.end_tokens)
    rows, prompts, golds = [], [], []
    for prompt, gold, trajectory in zip(
        inputs.prompts, inputs.questions.gold, context.trajectories, strict=True
    ):
        steps = forced_steps(prompt.question_id, len(trajectory), sampling["num_samples"], seed)
        for sample_id, step in enumerate(steps):
            rows.append((prompt.question_id, sample_id, step, kind(trajectory[step]), trajectory))
            prompts.append(Prompt(f"{prompt.question_id}/{sample_id}", prompt.token_ids))
            golds.append(gold)
    table = pd.DataFrame(rows, columns=["question_id", "sample_id", "step", "kind", "trajectory"])
    # One prompt per response, since each has an edit of its own.
    params = {**sampling, "num_samples": 1}
    sampler = EngineSampler(
        loading.decoder(loading.load(model, sampling["dtype"])),
        prompts,
        inputs.tokenizer,
        decoding_params(params, benchmark, seed=seed, stream=RECOVERY_STREAM),
        force_runner_up(list(table.trajectory), list(table.step)),
    )
    parameters = {
        **metadata,
        **benchmark,
        "sampling": recorded(sampling),
        "seed": seed,
        "stream": RECOVERY_STREAM,
    }
    unrecorded = {"models": [folder_digest(model)]}
    with _sampled(sampler, inputs, context, parameters, unrecorded, output, golds=golds) as (
        responses,
        made_by,
    ):
        columns = ["token_ids", "text", "correct"]
        table[columns] = responses[columns]
        parquet.write(output, table, "recovery", made_by)
    print(f"{len(table)} responses, {table.correct.mean():.3f} correct after a forced runner-up")


@contextlib.contextmanager
def _sampled(
    sampler: Sampler,
    inputs: JobInputs,
    context: base.Context,
    parameters: Mapping[str, Any],
    unrecorded: Mapping[str, Any],
    output: Path,
    indices: Sequence[int] | None = None,
    golds: Sequence[str] | None = None,
) -> Iterator[tuple[pd.DataFrame, dict[str, Any]]]:
    """The scored responses of a job and their provenance; the block writes the job's tables.

    An interrupted job resumes, in the block too.

    Args:
        sampler: of the job.
        inputs: what it reads.
        context: what the strategy may know.
        parameters: what the tables record, besides the sampler's identity.
        unrecorded: what else the responses depend on: digests of the model and of code.
        output: the job's first table.
        indices: of the questions to sample; None for all.
        golds: the gold answer of each of the sampler's prompts; None for those of the inputs.
    """
    parameters = {**parameters, **sampler.identity}
    golds = list(inputs.questions.gold) if golds is None else golds
    rule = extraction_rule(parameters["extraction"])
    settings = job_settings(inputs, rule, context, **parameters, **unrecorded)
    with resumable_parts(output, settings) as journal:
        table = sample_questions(sampler, golds, rule, journal=journal, indices=indices)
        yield table, provenance(**parameters)


def recorded(sampling: Mapping[str, Any]) -> dict[str, Any]:
    """What a table records of `sampling`: not the batch size, since no draw depends on it.

    A job that resumes with another batch size therefore writes the same bytes.
    """
    return {name: value for name, value in sampling.items() if name != "batch_size"}


def decoding_params(
    sampling: Mapping[str, Any], benchmark: Mapping[str, Any], **draws: Any
) -> SamplingParams:
    """How a job decodes: greedily, or as `sampling` says if `draws` names a seed and a stream."""
    drawn = ("num_samples", "temperature", "top_p")
    return SamplingParams(
        **({name: sampling[name] for name in drawn} if draws else {"temperature": 0}),
        **draws,
        max_new_tokens=sampling["max_new_tokens"],
        stop=list(benchmark["stop"]),
        batch_size=sampling["batch_size"],
        batch_invariant=sampling["batch_invariant"],
    )
