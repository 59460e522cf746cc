"""`zerogap.sample`: sample many responses per prompt from a model in memory."""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from zerogap.data.extraction import ExtractionRule, extraction_rule
from zerogap.engine import fused_layers, loading, memory
from zerogap.engine.decoder import Decoder, Prompt, Response, SamplingParams
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.io.digests import file_digest, folder_digest, value_digest
from zerogap.io.provenance import provenance
from zerogap.io.resume import resumable_dir
from zerogap.sampling.arguments import gold_answers, prompt_texts, sampling_params
from zerogap.sampling.cell import sample_questions
from zerogap.sampling.checkpoint import Checkpoint
from zerogap.sampling.greedy import decode_greedily
from zerogap.sampling.identity import (
    extraction_identity,
    model_identity,
    strategy_identity,
    tokenizer_identity,
    versions,
)
from zerogap.sampling.responses import check_lengths
from zerogap.sampling.samplers import EngineSampler
from zerogap.strategies.base import Context, Intervention, Strategy
from zerogap.strategies.filtering import filter_samples


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

    What all prompts begin with (the few-shot examples) is computed once. The random draws of a
    response depend on the seed, the prompt's id and the sample's id alone; other prompts, another
    batch size or another strategy leave them as they are.

    Args:
        model: any `transformers` causal language model.
        tokenizer: the model's tokenizer; it must have an end token.
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
        stop: one or several strings that end a response, in addition to the tokenizer's end token.
        seed: seed of the draws.
        batch_invariant: see :class:`zerogap.engine.decoder.SamplingParams`.
        batch_size: samples decoded together; "auto" uses as many as fit into memory.
        output: a Parquet file to write. Finished prompts are stored next to it on the way, so that
            an interrupted call resumes when it is repeated. Only a call with the same models,
            strategy, prompts, settings and library versions resumes it; all weights are compared.
        base_model: folder of the base model, for :class:`zerogap.strategies.shortcut.Shortcut`.
        neurons: its `neurons` file.

    Returns:
        One row per response, with the columns of the `samples` table (:mod:`zerogap.io.parquet`).

    Raises:
        InputError: an argument is invalid, the gold answers belong to other prompts, a prompt
            exceeds the model's context, the tokenizer has no end token, a stop string cannot occur,
            the logits are NaN, `output` cannot be written, the strategy's parameters cannot be
            written down (only with `output`), or another process is writing the same output.
    """
    is_strategy = callable(getattr(strategy, "prepare", None)) and not isinstance(strategy, type)
    if strategy is not None and not is_strategy:
        raise InputError(f"strategy: must be a strategy such as RailCap(n=4), not {strategy!r}")
    if output is not None and Path(output).is_dir():
        raise InputError(f"{output}: is a folder; name the file to write")
    for name, path in (("base_model", base_model), ("neurons", neurons)):
        if path is not None and not Path(path).exists():
            raise InputError(f"{name}: {path} does not exist")
    texts = prompt_texts(prompts)
    rule = extraction_rule(extraction)
    golds = gold_answers(texts, gold, rule)
    sampling = sampling_params(
        temperature=temperature,
        top_p=top_p,
        max_new_tokens=max_new_tokens,
        stop=stop,
        num_samples=num_samples,
        seed=seed,
        batch_size=batch_size,
        batch_invariant=batch_invariant,
    )
    encoded = tokenizer(list(texts.values()))["input_ids"]
    tokenized = [Prompt(name, ids) for name, ids in zip(texts, encoded, strict=True)]
    check_lengths(tokenized, loading.context_length(model.config), max_new_tokens)
    job = _Job(
        model,
        tokenizer,
        tokenized,
        golds,
        rule,
        sampling,
        strategy,
        base_model=None if base_model is None else Path(base_model),
        neurons=None if neurons is None else Path(neurons),
    )
    try:
        with _left_unchanged(model):
            return job.run(None if output is None else Path(output))
    finally:
        if base_model is not None:
            memory.release()  # its fused layers refer to themselves


@dataclasses.dataclass(frozen=True)
class _Job:
    """What one call samples, and how."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    prompts: list[Prompt]
    golds: list[str | None]
    rule: ExtractionRule
    sampling: SamplingParams
    strategy: Strategy | None
    base_model: Path | None
    neurons: Path | None

    def run(self, output: Path | None) -> pd.DataFrame:
        """Decode the trajectories that the strategy needs, then sample."""
        decoder = loading.decoder(self.model)
        try:
            return self._run(decoder, output)
        finally:
            decoder.reserve(None)  # on a GPU it has reserved most of the memory

    def _run(self, decoder: Decoder, output: Path | None) -> pd.DataFrame:
        if self.strategy is None:
            return self._sample(decoder, Intervention(), [], output)
        params = dataclasses.replace(self.sampling, temperature=0, num_samples=1)
        trajectories, _ = decode_greedily(decoder, self.prompts, self.tokenizer, params)
        context = Context(
            trajectories=[trajectory.token_ids for trajectory in trajectories],
            entropies=[trajectory.entropy for trajectory in trajectories],
            tokenizer=self.tokenizer,
            base_model=self.base_model,
            neurons=self.neurons,
        )
        intervention = self.strategy.prepare(context)
        with intervention.applied_to(decoder) as changed:
            return self._sample(changed, intervention, trajectories, output)

    def _sample(
        self,
        decoder: Decoder,
        intervention: Intervention,
        trajectories: list[Response],
        output: Path | None,
    ) -> pd.DataFrame:
        def sample_and_filter(checkpoint: Checkpoint | None = None) -> pd.DataFrame:
            sampler = EngineSampler(
                decoder, self.prompts, self.tokenizer, self.sampling, intervention.edit_logits
            )
            table = sample_questions(sampler, self.golds, self.rule, checkpoint=checkpoint)
            if intervention.filter_responses is None:
                return table
            by_prompt = {
                prompt.question_id: (trajectory.token_ids, trajectory.finish_reason)
                for prompt, trajectory in zip(self.prompts, trajectories, strict=True)
            }
            return filter_samples(table, by_prompt, intervention.filter_responses)

        if output is None:
            return sample_and_filter()
        with resumable_dir(output, self._settings(trajectories)) as folder:
            table = sample_and_filter(Checkpoint(folder))
            metadata = provenance(
                strategy=repr(self.strategy),
                sampling=vars(self.sampling),
                model=self.model.name_or_path,
            )
            parquet.write(output, table, "samples", metadata)
        return table

    def _settings(self, trajectories: list[Response]) -> dict[str, Any]:
        """Everything the samples depend on: a call with other settings does not resume this one."""
        prompts = [(prompt.question_id, prompt.token_ids) for prompt in self.prompts]
        return {
            "strategy": strategy_identity(self.strategy),
            "base_model": self.base_model and folder_digest(self.base_model),
            "neurons": self.neurons and file_digest(self.neurons),
            "sampling": {**vars(self.sampling), "batch_size": None},
            "extraction": extraction_identity(self.rule),
            "versions": versions(),
            "prompts": value_digest([prompts, self.golds]),
            "trajectories": value_digest([trajectory.token_ids for trajectory in trajectories]),
            "tokenizer": tokenizer_identity(self.tokenizer),
            "model": model_identity(self.model),
        }


@contextlib.contextmanager
def _left_unchanged(model: PreTrainedModel) -> Iterator[None]:
    """Give the model its own attention, layers and mode back: the decoders replace them."""
    attention, is_training = model.config._attn_implementation, model.training
    try:
        yield
    finally:
        model.set_attn_implementation(attention)
        fused_layers.unfuse(model)
        model.train(is_training)
