"""`zerogap.sample`: sample many responses per prompt from a model in memory."""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from zerogap.data.extraction import ExtractionRule
from zerogap.engine import generation_config, loading, memory
from zerogap.engine.decoder import Decoder, Prompt, Response, SamplingParams
from zerogap.io import atomic, parquet
from zerogap.io.digests import file_digest, folder_digest, value_digest
from zerogap.io.provenance import provenance
from zerogap.io.resume import Journal, resumable_parts
from zerogap.sampling import arguments
from zerogap.sampling.cell import sample_questions
from zerogap.sampling.identity import (
    extraction_identity,
    model_identity,
    strategy_identity,
    tokenizer_identity,
    versions,
)
from zerogap.sampling.samplers import EngineSampler, decode_greedily
from zerogap.strategies.base import Context, Intervention, Strategy, prepared
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

    What all prompts begin with (the few-shot examples) is computed once. The random draws of a
    response depend on the seed, the prompt's id and the sample's id alone; other prompts, another
    batch size or another strategy leave them as they are.

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
        output: a Parquet file to write. Finished prompts are stored next to it on the way, so that
            an interrupted call resumes when it is repeated. Only a call with the same models,
            strategy, prompts, settings and library versions resumes it; all weights and what the
            model answers to a few tokens are compared. A model with hooks cannot be resumed.
        base_model: folder of the base model, for :class:`zerogap.strategies.shortcut.Shortcut`.
        neurons: its `neurons` file.

    Returns:
        One row per response, with the columns of the `samples` table (:mod:`zerogap.io.parquet`).

    Raises:
        InputError: an argument is invalid, the gold answers belong to other prompts, a prompt
            exceeds the model's context, the model has no end token, a stop string cannot occur,
            the logits are NaN, `output` cannot be written, the strategy's parameters cannot be
            serialised or the model has hooks (both only with `output`), or another process is
            writing the same output.
    """
    arguments.check_model(model, tokenizer)
    if strategy is not None:
        arguments.check_strategy(strategy)
    target = arguments.path_of(output, "output")
    base_model = arguments.existing(base_model, "base_model", Path.is_dir)
    neurons = arguments.existing(neurons, "neurons", Path.is_file)
    if base_model is not None:
        loading.check_folder(base_model, with_tokenizer=False)
    if target is not None:
        atomic.output_file(target, [path for path in (base_model, neurons) if path])
    texts = arguments.prompt_texts(prompts)
    rule = arguments.extraction_of(extraction)
    golds = arguments.gold_answers(texts, gold, rule)
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
    tokenized = arguments.tokenized_prompts(texts, model, tokenizer, sampling.max_new_tokens)
    generation_config.note_ignored(model.generation_config, model.name_or_path or "the model")
    identity = None if target is None else model_identity(model)
    call = _Call(
        model, tokenizer, tokenized, golds, rule, sampling, strategy or Identity(), identity
    )
    with _decoder_of(model) as decoder:
        trajectories = [] if strategy is None else call.decode_trajectories(decoder)
        context = Context(
            trajectories=[trajectory.token_ids for trajectory in trajectories],
            entropies=[trajectory.entropy for trajectory in trajectories],
            tokenizer=tokenizer,
            end_tokens=call.end_tokens,
            base_model=base_model,
            neurons=neurons,
        )
        intervention = prepared(call.strategy, context)
        with intervention.applied_to(decoder) as changed:
            if target is None:
                table = call.sample(changed, intervention, trajectories)
            else:
                with resumable_parts(target, call.settings(context)) as journal:
                    table = call.sample(changed, intervention, trajectories, journal)
                    parquet.write(target, table, "samples", call.provenance())
    if base_model is not None:
        memory.release()  # its captured steps refer to themselves
    return table


@dataclasses.dataclass(frozen=True)
class _Call:
    """What one call samples, and how."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    prompts: list[Prompt]
    golds: list[str | None]
    rule: ExtractionRule
    sampling: SamplingParams
    strategy: Strategy
    identity: Mapping[str, Any] | None  # of the model as it was given; needed for a file only

    @property
    def end_tokens(self) -> list[int]:
        """Ids of the tokens that end a response."""
        return generation_config.end_tokens(self.tokenizer, self.model.generation_config)

    def decode_trajectories(self, decoder: Decoder) -> list[Response]:
        """Decode every prompt's greedy trajectory as the samples are decoded."""
        params = dataclasses.replace(self.sampling, temperature=0, num_samples=1)
        return decode_greedily(decoder, self.prompts, self.tokenizer, params)[0]

    def sample(
        self,
        decoder: Decoder,
        intervention: Intervention,
        trajectories: list[Response],
        journal: Journal | None = None,
    ) -> pd.DataFrame:
        """Sample, and drop the responses that the strategy filters out."""
        sampler = EngineSampler(
            decoder, self.prompts, self.tokenizer, self.sampling, intervention.edit_logits
        )
        table = sample_questions(sampler, self.golds, self.rule, journal=journal)
        if intervention.filter_responses is None:
            return table
        by_prompt = {
            prompt.question_id: (trajectory.token_ids, trajectory.finish_reason)
            for prompt, trajectory in zip(self.prompts, trajectories, strict=True)
        }
        return filter_samples(table, by_prompt, intervention.filter_responses)

    def provenance(self) -> dict[str, Any]:
        """How the samples were made."""
        return provenance(
            strategy=repr(self.strategy),
            sampling=vars(self.sampling),
            model=self.model.name_or_path,
        )

    def settings(self, context: Context) -> dict[str, Any]:
        """Everything the samples depend on: a call with other settings does not resume this one."""
        prompts = [(prompt.question_id, prompt.token_ids) for prompt in self.prompts]
        return {
            "strategy": strategy_identity(self.strategy),
            "base_model": context.base_model and folder_digest(context.base_model),
            "neurons": context.neurons and file_digest(context.neurons),
            "sampling": {**vars(self.sampling), "batch_size": None},
            "extraction": extraction_identity(self.rule),
            "versions": versions(),
            "prompts": value_digest([prompts, self.golds]),
            "trajectories": value_digest(context.trajectories),
            "tokenizer": tokenizer_identity(self.tokenizer),
            "end_tokens": self.end_tokens,
            "model": self.identity,
        }


@contextlib.contextmanager
def _decoder_of(model: PreTrainedModel) -> Iterator[Decoder]:
    """A decoder of the model, which then has its own attention and mode again."""
    attention, is_training = model.config._attn_implementation, model.training
    decoder = loading.decoder(model)
    try:
        yield decoder
    finally:
        decoder.reserve(None)  # on a GPU it has reserved most of the memory
        model.set_attn_implementation(attention)
        model.train(is_training)
