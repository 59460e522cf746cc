"""The model type `zerogap` of lm-evaluation-harness: its `hf` model under a strategy.

Importing this module registers the type. Batching, chat templates and generation arguments are
those of the harness; of the model's generation config only the end tokens have an effect, as
everywhere in this package (:mod:`zerogap.engine.generation_config`). Only what a strategy changes
is added. Before the requests of a call are answered, each one's greedy trajectory is decoded once,
whatever its `repeats` (docs/railcap.md).
"""

import inspect
import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from itertools import compress
from typing import Any, NamedTuple

import torch
from lm_eval.api.instance import Instance
from lm_eval.api.model import CacheHook
from lm_eval.api.registry import register_model
from lm_eval.models.huggingface import HFLM
from lm_eval.models.utils import normalize_gen_kwargs
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessorList, PreTrainedTokenizerBase

from zerogap.engine import generation_config
from zerogap.engine.decoder import Edit, Rows
from zerogap.engine.drawing import entropy
from zerogap.errors import InputError
from zerogap.sampling.responses import SAME_DAY
from zerogap.strategies.base import Context, Strategy, build, prepared, strategy_class
from zerogap.strategies.filtering import DROPPED, ResponseFilter
from zerogap.strategies.identity import Identity
from zerogap.strategies.logits_processor import EditLogits
from zerogap.strategies.registry import BUILT_IN

# What decides a trajectory: the prompt's tokens, the stop strings and the number of new tokens.
PromptKey = tuple[tuple[int, ...], tuple[str, ...], int]
# (generate a batch under an edit, its prompts, their padded length) → prompts and responses (R, L).
BatchGenerator = Callable[[Callable[..., Tensor], list[PromptKey], int], Tensor]


class Trajectory(NamedTuple):
    """A greedy trajectory: its token ids, end token included, and every step's entropy (nats)."""

    token_ids: list[int]
    entropy: list[float]


@register_model("zerogap")
class StrategyLM(HFLM):  # type: ignore[misc]
    """A causal language model that answers `generate_until` requests under a strategy.

    Args:
        strategy: the name of a built-in strategy, `package.module:Class`, or a strategy.
        **arguments: the parameters of a strategy that is given by name, and the arguments of the
            harness's `hf` model. Names that both have are the model's.

    Raises:
        InputError: the strategy is unknown, rejects its parameters, or replaces the decoder; an
            argument is unknown; or the model is not a causal language model.
    """

    cache_hook: CacheHook

    def __init__(
        self, pretrained: Any, strategy: str | Strategy = "identity", **arguments: Any
    ) -> None:
        if isinstance(strategy, str):
            strategy = _build(strategy, arguments)
        try:
            super().__init__(pretrained, **arguments)
        except TypeError as error:
            if "unexpected keyword argument" not in str(error):
                raise
            raise InputError(
                f"model_args: {error}; neither the strategy nor --model hf has it"
            ) from error
        if self.backend != "causal":
            raise InputError("zerogap: a strategy needs a causal language model; use --model hf")
        self.chat_template_args: dict[str, Any] = {**SAME_DAY, **self.chat_template_args}
        self._strategy = strategy
        self._end_tokens = generation_config.end_tokens(
            self.tokenizer, self.model.generation_config
        )
        generation_config.note_ignored(self.model.generation_config, self.model.name_or_path)
        self._generate_batch: BatchGenerator | None = None

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Return a response to every request, in their order.

        A strategy that filters responses drops those of one request together: the responses that
        count come first, and each dropped one is replaced by :data:`DROPPED`.
        """
        if isinstance(self._strategy, Identity):
            return self._generate(requests, disable_tqdm, None)
        if not any(_samples(request) for request in requests):
            print(
                "note: the requests are greedy, which strategies are not made for: a filter drops "
                "every response, and a capped token ties with the runner-up; add --gen_kwargs "
                "do_sample=true,temperature=0.7",
                file=sys.stderr,
            )
        trajectories, greedy_texts = self._decode_trajectories(requests, disable_tqdm)
        context = Context(
            trajectories=[trajectory.token_ids for trajectory in trajectories.values()],
            entropies=[trajectory.entropy for trajectory in trajectories.values()],
            tokenizer=self.tokenizer,
            end_tokens=self._end_tokens,
        )
        intervention = prepared(self._strategy, context)
        if intervention.wrap_decoder is not None:
            raise InputError(
                f"zerogap: {self._strategy!r} replaces the decoder, and lm_eval's model has none; "
                "sample with zerogap.sample"
            )
        edit = intervention.edit_logits
        indices = {prompt: index for index, prompt in enumerate(trajectories)}

        def generate_edited(
            generate: Callable[..., Tensor], prompts: list[PromptKey], _: int
        ) -> Tensor:
            questions = torch.tensor([indices[prompt] for prompt in prompts])
            return generate(edit, questions)

        texts = self._generate(requests, disable_tqdm, generate_edited if edit else None)
        if intervention.filter_responses is None:
            return texts
        return _replace_dropped(
            self.tokenizer, requests, texts, greedy_texts, intervention.filter_responses
        )

    def _generate(
        self, requests: list[Instance], disable_tqdm: bool, generate_batch: BatchGenerator | None
    ) -> list[str]:
        own = self.model.generation_config
        self.model.generation_config = GenerationConfig(eos_token_id=self._end_tokens or None)
        self._generate_batch = generate_batch
        try:
            texts: list[str] = super().generate_until(requests, disable_tqdm)
        finally:
            self._generate_batch = None
            self.model.generation_config = own
        return texts

    def _decode_trajectories(
        self, requests: list[Instance], disable_tqdm: bool
    ) -> tuple[dict[PromptKey, Trajectory], dict[int, str]]:
        """Return every prompt's trajectory, and its text by the identity of the request."""
        unique = {id(request): request for request in requests}
        greedy = [_greedy_request(request, self.max_gen_toks) for request in unique.values()]
        trajectories: dict[PromptKey, Trajectory] = {}
        # A trajectory is not the answer to a request: lm_eval's response cache must not keep it.
        cache_hook, self.cache_hook = self.cache_hook, CacheHook(None)
        try:
            record = partial(self._recorded_batch, trajectories)
            texts = self._generate(greedy, disable_tqdm, record)
        finally:
            self.cache_hook = cache_hook
        return trajectories, dict(zip(unique, texts, strict=True))

    def _model_generate(
        self, context: Tensor, max_length: int, stop: list[str], **arguments: Any
    ) -> Tensor:
        """Generate for a batch of prompts (R, L), padded on the left, as `hf` does."""
        length = context.shape[1]
        own: Callable[..., Tensor] = partial(
            super()._model_generate, context, max_length, stop, **arguments
        )
        if self._generate_batch is None:
            return own()

        def generate(edit: Edit, questions: Tensor) -> Tensor:
            return own(logits_processor=LogitsProcessorList([EditLogits(edit, questions, length)]))

        prompts = [
            (tuple(tokens[mask.bool()].tolist()), tuple(stop), max_length - length)
            for tokens, mask in zip(context.cpu(), arguments["attention_mask"].cpu(), strict=True)
        ]
        return self._generate_batch(generate, prompts, length)

    def _recorded_batch(
        self,
        trajectories: dict[PromptKey, Trajectory],
        generate: Callable[..., Tensor],
        prompts: list[PromptKey],
        prompt_length: int,
    ) -> Tensor:
        """Generate greedily, and add the trajectories of a batch."""
        recorded: list[Tensor] = []  # (R,) per step

        def record(logits: Tensor, _: Rows) -> Tensor:
            recorded.append(entropy(logits).cpu())
            return logits

        output = generate(record, torch.arange(len(prompts)))
        entropies = torch.stack(recorded, dim=1).tolist()
        generated = output[:, prompt_length:].tolist()
        for prompt, tokens, steps in zip(prompts, generated, entropies, strict=True):
            end = self._end(tokens, prompt[1])
            trajectories[prompt] = Trajectory(tokens[:end], steps[:end])
        return output

    def _end(self, tokens: list[int], stop: tuple[str, ...]) -> int:
        """Return the length of a response: up to an end token or a stop string, included.

        A row that has ended continues until all rows of its batch have.
        """
        ends = (k for k, token in enumerate(tokens, 1) if token in self._end_tokens)
        length = next(ends, len(tokens))
        return bisect_left(
            range(length),
            True,
            key=lambda k: any(string in self.tok_decode(tokens[:k]) for string in stop),
        )

    def _loglikelihood_tokens(self, *arguments: Any, **options: Any) -> list[tuple[float, bool]]:
        if not isinstance(self._strategy, Identity):
            raise InputError(
                f"zerogap: {self._strategy!r} changes what a model generates, not the likelihood "
                "of given answers; choose tasks with output_type generate_until"
            )
        likelihoods: list[tuple[float, bool]] = super()._loglikelihood_tokens(*arguments, **options)
        return likelihoods


def _replace_dropped(
    tokenizer: PreTrainedTokenizerBase,
    requests: list[Instance],
    texts: list[str],
    greedy_texts: dict[int, str],
    response_filter: ResponseFilter,
) -> list[str]:
    positions = defaultdict(list)
    for position, request in enumerate(requests):
        positions[id(request)].append(position)
    replaced = [DROPPED] * len(texts)
    for request, where in positions.items():
        responses = [texts[position] for position in where]
        trajectory, *token_ids = tokenizer(
            [greedy_texts[request], *responses], add_special_tokens=False
        )["input_ids"]
        keep = response_filter(trajectory, token_ids, responses)
        if len(keep) != len(responses):
            raise InputError("strategies: filter_responses must return one bool per response")
        for position, text in zip(where, compress(responses, keep), strict=False):
            replaced[position] = text
    return replaced


def _build(name: str, arguments: dict[str, Any]) -> Strategy:
    """Build the named strategy from its parameters, which are removed from `arguments`."""
    if name in BUILT_IN and BUILT_IN[name].needs_base_model:
        raise InputError(
            f"zerogap: strategy={name} also decodes with the base model, which lm_eval does not "
            "load; sample with zerogap.sample"
        )
    names = set(inspect.signature(strategy_class(name)).parameters)
    names -= set(inspect.signature(HFLM).parameters)
    parameters = {key: arguments.pop(key) for key in names & set(arguments)}
    return build({"class": name, "parameters": parameters})


def _samples(request: Instance) -> bool:
    """Whether a request draws its tokens."""
    options = request.args[1]
    temperature = options.get("temperature", 0)
    return bool(options.get("do_sample", temperature)) and temperature != 0


def _greedy_request(request: Instance, default_max_gen_toks: int) -> Instance:
    context, arguments = request.args
    if "max_length" in arguments:
        raise InputError("gen_kwargs: max_length counts the prompt too; give max_gen_toks")
    values = normalize_gen_kwargs(arguments, default_max_gen_toks)
    greedy = {name: values[name] for name in ("until", "max_gen_toks")} | {"do_sample": False}
    return Instance("generate_until", {}, (context, greedy), 0)
