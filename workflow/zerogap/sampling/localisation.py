"""The workflow's jobs that find shortcut neurons, from files to files.

The arguments and errors are those of the other jobs: :mod:`zerogap.sampling.jobs`. The method is
:mod:`zerogap.strategies.neuron_localisation`. At most two models are in memory at the same time.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from zerogap.data.extraction import ExtractionRule, extraction_rule
from zerogap.engine import loading, memory
from zerogap.engine.decoder import Decoder, SamplingParams
from zerogap.engine.output_head import float32_logits
from zerogap.engine.patched_decoder import KeptPrefix
from zerogap.io import parquet
from zerogap.io.digests import folder_digest
from zerogap.io.provenance import merged_provenance, provenance
from zerogap.io.resume import Journal, resumable_parts
from zerogap.precision import used_precision
from zerogap.sampling.identity import job_settings
from zerogap.sampling.jobs import decoding_params, recorded
from zerogap.sampling.responses import JobInputs, response_texts
from zerogap.sampling.samplers import decode_greedily
from zerogap.strategies.neuron_localisation import (
    Accuracies,
    GreedyResponse,
    NeuronGroup,
    causal_scores,
    comparative_scores,
    neuron_groups,
    patched_accuracies,
    score_neurons,
    select_neurons,
)

PATCHED = ("contaminated", "clean")  # the models that are patched with the base model


def localise_neurons(
    *,
    contaminated: Path,
    clean: Path,
    base_model: Path,
    questions: Path,
    exemplars: Path,
    greedy: Path,
    output: Path,
    sampling: Mapping[str, Any],
    neuron_localisation: Mapping[str, Any],
    seed: int,
    benchmark: Mapping[str, Any],
    metadata: Mapping[str, Any],
    shard: tuple[int, int] = (0, 1),
) -> None:
    """Write the `neurons` table of a contaminated model, from its leaked questions.

    An interrupted job resumes after the last group that it has scored when it is run again with the
    same arguments; the batch size may differ.

    `neuron_localisation` is the configuration's entry of that name, without `num_shards`; `seed`
    draws the questions of the causal scores. A `shard` (k, n) scores every n-th group, starting
    from the k-th (counted from 0), and selects no neurons: :func:`merge_neurons` does.

    Raises:
        InputError: see :mod:`zerogap.sampling.jobs`; or memory is too small for one question, or
            another process is writing the same output.
    """
    inputs = JobInputs.read(
        contaminated, questions, exemplars, sampling, benchmark, only_leaked=True
    )
    parameters = {
        **metadata,
        **benchmark,
        "neuron_localisation": neuron_localisation,
        "sampling": recorded(sampling),
        "seed": seed,
        "device": "cuda" if torch.cuda.is_available() else "cpu",
        "precision": used_precision(sampling["dtype"]),
    }
    models = {"contaminated": contaminated, "clean": clean, "base": base_model}
    context = inputs.context(parquet.read_of_run(greedy, "greedy"))
    rule = extraction_rule(benchmark["extraction"])
    digests = [folder_digest(folder) for folder in models.values()]
    settings = job_settings(inputs, rule, context, **parameters, shard=shard, models=digests)
    responses = [
        GreedyResponse(prompt.token_ids, trajectory)
        for prompt, trajectory in zip(inputs.prompts, context.trajectories, strict=True)
    ]
    with resumable_parts(output, settings) as journal:
        comparative = comparative_scores(
            loading.load(contaminated, sampling["dtype"]),
            loading.load(clean, sampling["dtype"]),
            responses,
        )
        memory.release()  # both models are dropped
        all_groups = neuron_groups(
            [len(scores) for scores in comparative], neuron_localisation["group_size"]
        )
        groups = all_groups[shard[0] :: shard[1]]
        asked = inputs.questions.sample(
            n=min(neuron_localisation["num_questions"], len(inputs.questions)), random_state=seed
        )
        passes = GreedyPasses(inputs, asked, rule, decoding_params(sampling, benchmark))
        accuracies = _measure(models, sampling["dtype"], groups, passes, journal)
        table = score_neurons(comparative, causal_scores(**accuracies))
        num_neurons = sum(len(scores) for scores in comparative)
        if shard[1] == 1:
            table = select_neurons(table, num_neurons, neuron_localisation["fraction"])
        parquet.write(output, table, "neurons", provenance(**parameters, num_neurons=num_neurons))
    print(f"{len(groups)} groups scored, {int(table.selected.sum())} neurons selected")


def merge_neurons(*, shards: Sequence[Path], output: Path) -> None:
    """Concatenate the `neurons` tables of all shards and select the neurons."""
    made_by = [parquet.provenance(path) for path in shards]
    table = select_neurons(
        pd.concat([parquet.read_of_run(path, "neurons") for path in shards]),
        made_by[0]["num_neurons"],
        made_by[0]["neuron_localisation"]["fraction"],
    )
    parquet.write(output, table, "neurons", merged_provenance(made_by))
    print(f"{len(shards)} shards, {int(table.selected.sum())} neurons selected")


class GreedyPasses:
    """Greedy passes over the questions of the causal scores.

    Args:
        inputs: what the job reads.
        questions: those rows of its `questions` that are decoded.
        rule: grades the responses.
        params: how they are decoded, greedily.

    Attributes:
        batch_size: of the latest pass; None for as many questions as fit into memory. Later passes
            continue with it.
    """

    def __init__(
        self,
        inputs: JobInputs,
        questions: pd.DataFrame,
        rule: ExtractionRule,
        params: SamplingParams,
    ) -> None:
        self._golds = list(questions.gold)
        self._prompts = [inputs.prompts[index] for index in questions.index]
        self._tokenizer = inputs.tokenizer
        self._params, self._rule = params, rule
        self.batch_size: int | None = None

    def resume(self, batch_size: int | None) -> None:
        """Continue with the batch size of an earlier attempt, if there was one."""
        self.batch_size = self._params.resumed_batch_size(batch_size)

    def accuracy(self, decoder: Decoder) -> float:
        """Return the fraction of the questions that the decoder's greedy responses solve."""
        params = dataclasses.replace(
            self._params, batch_size=self.batch_size or self._params.batch_size
        )
        responses, self.batch_size = decode_greedily(
            decoder, self._prompts, self._tokenizer, params
        )
        texts = response_texts(responses, self._tokenizer, params.stop)
        grades = map(self._rule.grade, texts, self._golds)
        return float(np.mean([grade.correct is True for grade in grades]))


def _measure(
    models: Mapping[str, Path],
    dtype: str,
    groups: Sequence[NeuronGroup],
    passes: GreedyPasses,
    journal: Journal,
) -> dict[str, Accuracies]:
    """The accuracies of the two patched models; what the journal lacks is measured.

    One model after the other is in memory, each with the base model.
    """
    base: KeptPrefix | None = None
    for name in PATCHED:
        unknown = [group for group in groups if journal.get(_key(name, group)) is None]
        if not unknown and journal.get(_key(name, None)):
            continue
        if base is None:
            net = loading.load(models["base"], dtype)
            base = KeptPrefix(loading.decoder(net, with_logits=False))
        decoder = loading.decoder(loading.load(models[name], dtype))
        with float32_logits(decoder.model):  # for all passes, so that captured steps stay valid
            if journal.get(_key(name, None)) is None:
                passes.batch_size = None
                accuracy = passes.accuracy(decoder)
                journal.add(_key(name, None), [accuracy, passes.batch_size])
            kept = [journal.get(_key(name, group)) for group in groups]
            passes.resume(min((size for _, size in filter(None, kept)), default=None))
            for group, accuracy in patched_accuracies(decoder, base, unknown, passes.accuracy):
                journal.add(_key(name, group), [accuracy, passes.batch_size])
        del decoder
        memory.release()
    return {
        name: Accuracies(
            unpatched=journal.get(_key(name, None))[0],
            patched={group: journal.get(_key(name, group))[0] for group in groups},
        )
        for name in PATCHED
    }


def _key(model: str, group: NeuronGroup | None) -> str:
    """The journal's key for the accuracy of a model, unpatched or with one group patched."""
    return json.dumps([model, group])
