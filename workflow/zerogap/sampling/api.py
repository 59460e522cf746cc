"""`zerogap.sample`: sample many responses per prompt from a model in memory."""

import contextlib
import dataclasses
import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from zerogap.data.extraction import ExtractionRule, extraction_rule
from zerogap.engine import generation_config, loading, memory
from zerogap.engine.decoder import Decoder, Prompt, Response, SamplingParams
from zerogap.errors import InputError
from zerogap.io import atomic, parquet
from zerogap.io.digests import file_digest, folder_digest, value_digest
from zerogap.io.provenance import provenance
from zerogap.io.resume import Journal, resumable_parts
from zerogap.sampling.cell import sample_questions
from zerogap.sampling.identity import (
    extraction_identity,
    model_identity,
    strategy_identity,
    tokenizer_identity,
    versions,
)
from zerogap.sampling.responses import check_lengths
from zerogap.sampling.samplers import EngineSampler, decode_greedily
from zerogap.strategies.base import Context, Intervention, Strategy
from zerogap.strategies.filtering import filter_samples
from zerogap.strategies.identity import Identity

_MAX_SEED = 2**63 - 1


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


# Argument → whether a value is allowed, and which values are.
_ALLOWED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "temperature": (lambda x: _is_number(x) and 0 <= x < math.inf, "finite and at least 0"),
    "top_p": (lambda x: _is_number(x) and 0 < x <= 1, "above 0 and at most 1"),
    "num_samples": (_is_count, "a whole number of at least 1"),
    "max_new_tokens": (_is_count, "a whole number of at least 1"),
    "batch_size": (
        lambda x: x == "auto" or _is_count(x), '"auto" or a whole number of at least 1'
    ),
    "seed": (
        lambda x: (x == 0 and _is_number(x)) or (_is_count(x) and x <= _MAX_SEED),
        f"a whole number from 0 to {_MAX_SEED}",
    ),
}  # fmt: skip


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
    _check_strategy(strategy)
    _check_paths(output=output, base_model=base_model, neurons=neurons)
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
    generation_config.note_ignored(model.generation_config, model.name_or_path or "the model")
    identity = None if output is None else model_identity(model)
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
            base_model=None if base_model is None else Path(base_model),
            neurons=None if neurons is None else Path(neurons),
        )
        intervention = call.strategy.prepare(context)
        with intervention.applied_to(decoder) as changed:
            if output is None:
                table = call.sample(changed, intervention, trajectories)
            else:
                with resumable_parts(Path(output), call.settings(context)) as journal:
                    table = call.sample(changed, intervention, trajectories, journal)
                    parquet.write(output, table, "samples", call.provenance())
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


def _check_strategy(strategy: Any) -> None:
    is_strategy = callable(getattr(strategy, "prepare", None)) and not isinstance(strategy, type)
    if strategy is not None and not is_strategy:
        raise InputError(f"strategy: must be a strategy such as RailCap(n=4), not {strategy!r}")


def _check_paths(*, output: str | Path | None, **inputs: str | Path | None) -> None:
    given = {name: path for name, path in inputs.items() if path is not None}
    for name, path in given.items():
        if not Path(path).exists():
            raise InputError(f"{name}: {path} does not exist")
    if output is not None:
        atomic.output_file(output, given.values())


def prompt_texts(prompts: Any) -> dict[str, str]:
    """Prompts by id; those in a list are numbered.

    Raises:
        InputError: these are not prompts.
    """
    texts = _by_id(prompts, "prompts", "pass a list of texts or a mapping from ids to texts")
    if not texts:
        raise InputError("prompts: is empty; pass at least one prompt")
    for name, text in texts.items():
        if not isinstance(name, str):
            raise InputError(f"prompts: the id {name!r} must be a text")
        if not isinstance(text, str) or not text:
            raise InputError(f"prompts: prompt '{name}' must be a non-empty text, not {text!r}")
    return texts


def gold_answers(prompts: Mapping[str, str], gold: Any, rule: ExtractionRule) -> list[str | None]:
    """The gold answer of every prompt, in their order; numbers are accepted as well as texts.

    Raises:
        InputError: these are not the prompts' gold answers.
    """
    if gold is None:
        return [None] * len(prompts)
    answers = _by_id(gold, "gold", "pass a list or a mapping with one answer per prompt")
    if unmatched := sorted(set(answers) ^ set(prompts), key=str):
        raise InputError(f"gold: must have one answer per prompt; see '{unmatched[0]}'")
    return [_gold_answer(name, answers[name], rule) for name in prompts]


def sampling_params(*, stop: Any, **values: Any) -> SamplingParams:
    """How to draw: the fields of :class:`SamplingParams`; `stop` may be a single text.

    Raises:
        InputError: a value is out of its range, or of another type.
    """
    for name, (is_valid, allowed) in _ALLOWED.items():
        if not is_valid(values[name]):
            raise InputError(f"{name}: must be {allowed} (got {values[name]!r})")
    stops = [stop] if isinstance(stop, str) or not isinstance(stop, Iterable) else list(stop)
    if not all(isinstance(text, str) and text for text in stops):
        raise InputError(f"stop: must be a list of non-empty texts (got {stop!r})")
    numbers_as_float = {name: float(values[name]) for name in ("temperature", "top_p")}
    return SamplingParams(**values | numbers_as_float, stop=stops)


def _by_id(values: Any, argument: str, remedy: str) -> dict[Any, Any]:
    if isinstance(values, Mapping):
        return dict(values)
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(f"{argument}: is a single {type(values).__name__}; {remedy}")
    return {str(index): value for index, value in enumerate(values)}


def _gold_answer(name: str, answer: Any, rule: ExtractionRule) -> str | None:
    if answer is None:
        return None
    if not isinstance(answer, str) and not _is_number(answer):
        raise InputError(f"gold: the answer to '{name}' must be a text or a number: {answer!r}")
    try:
        return rule.parse_gold(str(answer))
    except InputError as error:
        raise InputError(f"gold: the answer to '{name}': {error}") from error
