"""`zerogap.sample`: many responses to every prompt from a model in hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch
import transformers
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from zerogap.data.extraction import extraction_rule
from zerogap.engine import loading
from zerogap.engine.decoder import Prompt, SamplingParams
from zerogap.engine.sampler import greedy
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.sampling.cell import sample_questions
from zerogap.sampling.checkpoint import Parts
from zerogap.sampling.responses import check_lengths
from zerogap.strategies.base import Context, Intervention, Strategy
from zerogap.strategies.filtering import passing


def sample(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[str] | Mapping[str, str],
    m: int = 50,
    strategy: Strategy | None = None,
    *,
    gold: Sequence[str] | Mapping[str, str] | None = None,
    extraction: str = "numeric",
    temperature: float = 0.7,
    top_p: float = 1.0,
    max_new_tokens: int = 256,
    stop: Sequence[str] = (),
    seed: int = 0,
    exact: bool = False,
    batch_rows: int | None = None,
    output: str | Path | None = None,
    donor: str | Path | None = None,
    neurons: str | Path | None = None,
) -> pd.DataFrame:
    """Draw m responses to every prompt, under a mitigation strategy if one is given.

    What prompts have in common at their beginning (the few-shot examples) is computed once. The
    draws of a response depend on seed, prompt id and sample id alone: more prompts, another batch
    or another strategy leave them as they are.

    Args:
        model: any `transformers` causal language model; it stays switched to the sampler's
            attention.
        prompts: whole prompts; their ids are the mapping's keys, or "0", "1", …
        strategy: e.g. `RailCap(n=4)`; the greedy trajectories that it asks for are decoded first.
        gold: the right answers, by the same keys or in the same order; without them `correct` and
            the like are empty.
        extraction: which answer a response gives (:mod:`zerogap.data.extraction`).
        stop: strings that end a response, beside the tokenizer's end token.
        exact: see :class:`zerogap.engine.decoder.SamplingParams`.
        batch_rows: samples decoded together; as many as fit the memory where it is None.
        output: a Parquet file to write. Finished prompts are kept beside it on the way: a killed
            call, repeated, goes on where it was.
        donor, neurons: folder and file that :class:`zerogap.strategies.shortcut.Shortcut` borrows by.

    Returns:
        One row a response, the columns of the `samples` contract (:mod:`zerogap.io.parquet`).

    Raises:
        InputError: gold answers for other prompts, a prompt that exceeds the model's context, a
            tokenizer without an end token, a stop string that cannot occur, logits that are NaN,
            or an output that another process is making.
    """
    texts = dict(prompts) if isinstance(prompts, Mapping) else _numbered(prompts)
    golds: Mapping[str, str | None] = dict.fromkeys(texts)
    if gold is not None:
        golds = dict(gold) if isinstance(gold, Mapping) else _numbered(gold)
    if set(golds) != set(texts):
        some = sorted(set(golds) ^ set(texts))[0]
        raise InputError(f"gold: one answer to each prompt is needed; see '{some}'")
    encoded = tokenizer(list(texts.values()))["input_ids"]
    made = [Prompt(name, ids) for name, ids in zip(texts, encoded, strict=True)]
    check_lengths(made, loading.context_length(model), max_new_tokens)

    sampling = SamplingParams(
        temperature=temperature,
        top_p=top_p,
        max_new_tokens=max_new_tokens,
        stop=list(stop),
        num_samples=m,
        seed=seed,
        batch_size=batch_rows or "auto",
        batch_invariant=exact,
    )
    decoder = loading.decoder(model)
    intervention, trajectories = Intervention(), []
    if strategy is not None:
        plain = SamplingParams(temperature=0, max_new_tokens=max_new_tokens, stop=list(stop))
        trajectories = greedy(decoder, made, tokenizer, plain)
        intervention = strategy.prepare(
            Context(
                trajectories=[one.token_ids for one in trajectories],
                entropies=[one.entropy for one in trajectories],
                tokenizer=tokenizer,
                donor=donor and Path(donor),
                neurons=neurons and Path(neurons),
            )
        )
    if intervention.wrap is not None:
        decoder = intervention.wrap(decoder)
    judge = extraction_rule(extraction)
    right = [None if golds[name] is None else judge.parse_gold(golds[name]) for name in texts]
    asked = (decoder, made, right, tokenizer, sampling, judge, intervention.edit)

    def counted(table: pd.DataFrame) -> pd.DataFrame:
        if intervention.keep is None:
            return table
        ends = [(one.token_ids, one.finish_reason) for one in trajectories]
        return passing(table, dict(zip(texts, ends, strict=True)), intervention.keep)

    if output is None:
        table = counted(sample_questions(*asked))
    else:
        facts = provenance(
            strategy=repr(strategy), sampling=vars(sampling), model=model.name_or_path
        )
        origin = {
            "facts": [repr(strategy), {**vars(sampling), "batch_size": None}, str(model.device)],
            "versions": [torch.__version__, transformers.__version__],
            "prompts": [texts, right, extraction],
            "trajectories": [one.token_ids for one in trajectories],
            "model": _digest(model),
        }
        with Parts(Path(output), origin) as parts:
            table = counted(sample_questions(*asked, parts=parts))
            parquet.write(output, table, "samples", facts)
            parts.discard()
    return table


def _numbered(values: Sequence[str]) -> dict[str, str]:
    return {str(index): value for index, value in enumerate(values)}


def _digest(model: PreTrainedModel) -> dict[str, Any]:
    """What tells two models in memory apart without reading all of their weights."""
    return {
        name: [list(weight.shape), weight.flatten()[:: max(1, weight.numel() // 64)].tolist()]
        for name, weight in model.named_parameters()
    }
