"""Find the shortcut neurons of a contaminated model (Zhu et al., ACL 2025): the workflow's jobs.

Every neuron of every layer but the last gets two scores:

- comparative: how differently the contaminated and the clean model activate it on the contaminated
  model's own greedy responses (:func:`comparative_scores`);
- causal: what patching it with the base model's activations does to the two models' accuracy. That
  takes two greedy decodes per patch, so adjacent neurons are patched and scored together as a
  :class:`NeuronGroup` (:func:`causal_scores`).

The neurons with the largest sum are selected (:func:`select_neurons`). Groups are independent of
each other: any subset can be scored by any process, and their scores put together afterwards. At
most two models are in memory at the same time.

The arguments and errors are those of the other jobs: :mod:`zerogap.sampling.jobs`.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from transformers import PreTrainedModel

from zerogap.engine import loading, memory
from zerogap.engine.decoder import Decoder, Prompt, SamplingParams
from zerogap.engine.output_head import float32_logits
from zerogap.engine.patched_decoder import PatchedDecoder, recorded_activations
from zerogap.io import parquet
from zerogap.io.digests import folder_digest
from zerogap.io.provenance import merged_provenance, provenance
from zerogap.io.resume import Journal, resumable_parts
from zerogap.precision import used_precision
from zerogap.sampling.cell import EngineSampler
from zerogap.sampling.identity import job_settings
from zerogap.sampling.responses import JobInputs, decoding_params, recorded, scored_responses

PATCHED = ("contaminated", "clean")  # the models that are patched with the base model


class NeuronGroup(NamedTuple):
    """Adjacent neurons of one layer, `start` to `stop` - 1, that are scored together."""

    layer: int
    start: int
    stop: int


# The greedy accuracy of a model with a group patched; None stands for the model as it is.
Accuracies = Mapping[NeuronGroup | None, float]


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
    inputs = JobInputs.read(contaminated, questions, exemplars, sampling, benchmark)
    inputs = inputs.only(inputs.questions[inputs.questions.leaked])
    parameters = recorded(
        sampling,
        benchmark,
        metadata,
        neuron_localisation=neuron_localisation,
        seed=seed,
        device="cuda" if torch.cuda.is_available() else "cpu",
        precision=used_precision(sampling["dtype"]),
    )
    models = {"contaminated": contaminated, "clean": clean, "base": base_model}
    context = inputs.context(parquet.read_of_run(greedy, "greedy"))
    digests = [folder_digest(folder) for folder in models.values()]
    settings = job_settings(inputs, context, **parameters, shard=shard, models=digests)
    with resumable_parts(output, settings) as journal:
        comparative = comparative_scores(
            loading.load(contaminated, sampling["dtype"]),
            loading.load(clean, sampling["dtype"]),
            inputs.prompts,
            context.trajectories,
        )
        memory.release()  # both models are dropped
        widths = [len(scores) for scores in comparative]
        groups = neuron_groups(widths, neuron_localisation["group_size"])[shard[0] :: shard[1]]
        num_questions = min(neuron_localisation["num_questions"], len(inputs.questions))
        asked = inputs.only(inputs.questions.sample(num_questions, random_state=seed))
        params = decoding_params(sampling, benchmark)
        accuracies = _measure(models, sampling["dtype"], groups, asked, params, journal)
        table = score_neurons(comparative, causal_scores(**accuracies))
        if shard[1] == 1:
            table = select_neurons(table, sum(widths), neuron_localisation["fraction"])
        made_by = provenance(**parameters, num_neurons=sum(widths))
        parquet.write(output, table, "neurons", made_by)
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


def neuron_groups(layer_widths: Sequence[int], group_size: int) -> list[NeuronGroup]:
    """Divide the neurons of all layers but the last; a layer's last group may have fewer."""
    return [
        NeuronGroup(layer, start, min(start + group_size, width))
        for layer, width in enumerate(layer_widths[:-1])
        for start in range(0, width, group_size)
    ]


@torch.inference_mode()
def comparative_scores(
    contaminated: PreTrainedModel,
    clean: PreTrainedModel,
    prompts: Sequence[Prompt],
    trajectories: Sequence[list[int]],
) -> list[np.ndarray]:
    """Return how far the activations of every neuron are apart in the two models.

    Both models read the same text: the prompts and the contaminated model's own greedy
    trajectories (teacher forcing). The root mean square of the difference is taken over the tokens
    of the trajectories. There is one array (width,) per layer.
    """
    squares: list[Tensor] = []
    for prompt, response in zip(prompts, trajectories, strict=True):
        activations = [
            _response_activations(net, prompt.token_ids, response) for net in (contaminated, clean)
        ]
        differences = [((a - b) ** 2).sum(0) for a, b in zip(*activations, strict=True)]
        totals = squares or [torch.zeros_like(new) for new in differences]
        squares = [total + new for total, new in zip(totals, differences, strict=True)]
    num_tokens = sum(map(len, trajectories))
    return [(total / num_tokens).sqrt().numpy() for total in squares]


def _response_activations(
    model: PreTrainedModel, prompt: list[int], response: list[int]
) -> list[Tensor]:
    """Return each layer's activations (tokens, width) on the response, in float64 on the CPU."""
    inputs = torch.tensor([prompt + response], device=model.device)
    with recorded_activations(model) as activations:
        model.base_model(inputs, use_cache=False)  # no logits are needed
    # There is one sequence; OPT's layers have no dimension for it.
    return [layer.flatten(0, -2)[len(prompt) :].double().cpu() for layer in activations]


def _measure(
    models: Mapping[str, Path],
    dtype: str,
    groups: Sequence[NeuronGroup],
    inputs: JobInputs,
    params: SamplingParams,
    journal: Journal,
) -> dict[str, Accuracies]:
    """The accuracies of the two patched models; what the journal lacks is measured.

    One model after the other is in memory, each with the base model.
    """
    base: Decoder | None = None
    for name in PATCHED:
        kept = {group: journal.get(_key(name, group)) for group in (None, *groups)}
        unknown = [group for group, value in kept.items() if value is None]
        if not unknown:
            continue
        if base is None:
            base = loading.decoder(loading.load(models["base"], dtype), with_logits=False)
        decoder = loading.decoder(loading.load(models[name], dtype))
        # That of patched passes: the smallest that an earlier attempt had to take.
        sizes = [value[1] for group, value in kept.items() if group and value]
        batch_size = params.resumed_batch_size(min(sizes, default=None))
        with float32_logits(decoder.model):  # for all passes, so that captured steps stay valid
            for group, changed in patched_decoders(decoder, base, unknown):
                first = batch_size if group else None
                accuracy, used = _accuracy(changed, inputs, params, first)
                journal.add(_key(name, group), [accuracy, used])
                batch_size = used if group else batch_size
        del decoder, changed
        memory.release()
    return {
        name: {group: journal.get(_key(name, group))[0] for group in (None, *groups)}
        for name in PATCHED
    }


def _key(model: str, group: NeuronGroup | None) -> str:
    """The journal's key for the accuracy and batch size of a model with a group patched."""
    return json.dumps([model, group])


def patched_decoders(
    model: Decoder, base: Decoder, groups: Iterable[NeuronGroup | None]
) -> Iterator[tuple[NeuronGroup | None, Decoder]]:
    """Each group with the decoder that has it patched with the base model's activations.

    None, which comes first, is the model as it is.
    """
    if None in groups:
        yield None, model
    patched = PatchedDecoder(model, base, {})
    try:
        for group in filter(None, groups):
            patched.patch({group.layer: torch.arange(group.start, group.stop)})
            yield group, patched
    finally:
        patched.release()


def _accuracy(
    decoder: Decoder, inputs: JobInputs, params: SamplingParams, batch_size: int | None
) -> tuple[float, int]:
    """Return the fraction of questions that the greedy responses solve, and the batch size used.

    The first size to try is `batch_size`; without it, that of `params`.
    """
    sampler, indices = EngineSampler(decoder, inputs, params), range(len(inputs.prompts))
    drawn, used = memory.within_memory(
        lambda size: list(sampler.draw(indices, size)),
        min(batch_size or sampler.batch_size(), len(indices)),
        on_retry=lambda message: print(message, file=sys.stderr, flush=True),
    )
    solved = [
        scored_responses(inputs, index, responses, params.stop)[0]["correct"] is True
        for index, responses in drawn
    ]
    return float(np.mean(solved)), used


def causal_scores(contaminated: Accuracies, clean: Accuracies) -> dict[NeuronGroup, float]:
    """Score neuron groups by what patching them does to the two models' accuracy.

    A shortcut neuron is one whose patch costs the contaminated model M_co accuracy and leaves the
    clean model M_cl as it is:

        [a(M_co) − a_patched(M_co)] + [1 − (a(M_cl) − a_patched(M_cl))]
    """
    return {
        group: (contaminated[None] - accuracy) + 1 - (clean[None] - clean[group])
        for group, accuracy in contaminated.items()
        if group is not None
    }


def score_neurons(
    comparative: list[np.ndarray], causal: Mapping[NeuronGroup, float]
) -> pd.DataFrame:
    """Return the `neurons` table of these groups, with no neuron selected."""
    rows = [
        (group.layer, neuron, comparative[group.layer][neuron], score)
        for group, score in causal.items()
        for neuron in range(group.start, group.stop)
    ]
    table = pd.DataFrame(rows, columns=["layer", "neuron", "comparative", "causal"])
    return table.assign(score=table.comparative + table.causal, selected=False)


def select_neurons(table: pd.DataFrame, num_neurons: int, fraction: float) -> pd.DataFrame:
    """Select the neurons with the largest sum of comparative and causal score.

    Of several neurons with the same score, those of the first layers are selected first. The table
    is returned in the order of layers and neurons.

    Args:
        table: the scored neurons of all groups.
        num_neurons: neurons of all layers, the last layer included.
        fraction: neurons to select, as a fraction of `num_neurons`: the authors' 5,000 neurons are
            1.4 % of Llama-2-7B's 352,256.
    """
    table = table.sort_values(["layer", "neuron"], ignore_index=True)
    ranked = table.score.sort_values(ascending=False, kind="stable")
    table["selected"] = table.index.isin(ranked.index[: round(fraction * num_neurons)])
    return table
