"""Inspect: the model provider `zerogap/FOLDER`, and two scorers, also for logs that exist.

Inspect imports this module through the entry points `inspect_ai`. It asks a question once per epoch
and request by request. All responses to a prompt are therefore drawn when the first one is wanted,
as many as the task has epochs and together with those to other prompts that wait, and are handed
out one by one. What they are does not depend on the number of connections.
"""

import functools
import hashlib
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import anyio
import anyio.to_thread
import torch
from inspect_ai._util.error import PrerequisiteError  # Inspect shows it as one line
from inspect_ai.hooks import Hooks, TaskStart, hooks
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    get_model,
    modelapi,
)
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState
from rapidfuzz.distance import Levenshtein

from zerogap.data.extraction import RULES
from zerogap.engine import loading
from zerogap.errors import InputError
from zerogap.sampling.api import sample
from zerogap.sampling.responses import chat_prompt, encoded
from zerogap.strategies.base import build

# Options of a request, and the arguments of zerogap.sample that they are.
SAMPLING = {
    "max_tokens": "max_new_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "stop_seqs": "stop",
    "seed": "seed",
}
# Options about the transport, caches, tools and messages, which Inspect honours or nothing needs.
NO_EFFECT = {
    "max_retries", "timeout", "attempt_timeout", "stream_idle_timeout", "max_connections",
    "adaptive_connections", "system_message", "cache", "cache_prompt", "parallel_tool_calls",
    "internal_tools", "max_tool_output", "fail_on_refusal", "reasoning_history",
}  # fmt: skip
MAX_TOKENS = 256  # as everywhere in this package
WAIT_SECONDS = 0.1  # for the requests of other samples, to draw for all of them at once
NEAR, MAX_WORDS = 0.05, 100  # of peakedness: share of words, and how many are compared

_epochs = 1  # of the task that runs


@hooks(name="epochs", description="Tells models of zerogap the number of epochs.")
class _Epochs(Hooks):  # type: ignore[misc]
    async def on_task_start(self, data: TaskStart) -> None:
        global _epochs
        _epochs = data.spec.config.epochs or 1


class Request(NamedTuple):
    """A prompt, how many responses to it are drawn at once, and arguments of `zerogap.sample`."""

    prompt: str
    num_samples: int
    arguments: tuple[tuple[str, Any], ...]


class Drawn(NamedTuple):
    """The text of a response, why it ended ("eos", "stop" or "length"), and its tokens."""

    text: str
    finish_reason: str
    n_tokens: int


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise PrerequisiteError(f"zerogap: {error}") from error


@modelapi(name="zerogap")
class ZerogapAPI(ModelAPI):  # type: ignore[misc]
    """A model folder, sampled by our engine under a strategy.

    Args:
        model_name: the folder.
        base_url: unused, as is `api_key`.
        api_key: unused.
        config: Inspect's options of all requests.
        strategy: a strategy's name, or `package.module:Class`.
        chat_template: "apply" (default) or "ignore" the tokenizer's chat template, if it has one.
            Without it, a prompt is the text of the messages.
        dtype: precision of decoding; default bfloat16 on a GPU and float32 on a CPU.
        base_model: as `neurons`, for strategies that need it (:func:`zerogap.sample`).
        neurons: the `neurons` file of the model.
        **parameters: those of the strategy.

    Raises:
        PrerequisiteError: the folder is not a model's, or the strategy or a parameter is unknown.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig | None = None,
        strategy: str = "identity",
        chat_template: Literal["apply", "ignore"] = "apply",
        dtype: str | None = None,
        base_model: str | None = None,
        neurons: str | None = None,
        **parameters: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config or GenerateConfig())
        with _one_line():
            self._tokenizer = loading.load_tokenizer(model_name)
            self._sample = functools.partial(
                sample,
                loading.load(
                    model_name, dtype or ("bfloat16" if torch.cuda.is_available() else "float32")
                ),
                self._tokenizer,
                strategy=build({"class": strategy, "parameters": parameters}),
                base_model=base_model,
                neurons=neurons,
            )
        self._is_chat = chat_template == "apply" and self._tokenizer.chat_template is not None
        self._lock = anyio.Lock()
        self._waiting: Counter[Request] = Counter()
        self._blocks: Counter[Request] = Counter()  # how often responses were drawn
        self._drawn: defaultdict[Request, deque[Drawn]] = defaultdict(deque)

    def max_tokens(self) -> int:
        """The longest response, where a task does not set it."""
        return MAX_TOKENS

    async def generate(
        self, input: list[ChatMessage], tools: Sequence[Any], tool_choice: Any, config: Any
    ) -> ModelOutput:
        """Return one response.

        Raises:
            PrerequisiteError: an option or tool is not supported, or a value is out of its range.
        """
        options = config.model_dump(exclude_none=True)
        unknown = sorted(options.keys() - SAMPLING.keys() - NO_EFFECT) + ["tools"] * bool(tools)
        if unknown:
            raise PrerequisiteError(f"zerogap: {', '.join(unknown)} is not supported; leave it out")
        values = {SAMPLING[name]: options[name] for name in SAMPLING if name in options}
        values["stop"] = tuple(values.get("stop", ()))
        is_first_turn = all(message.role != "assistant" for message in input)
        request = Request(
            self._prompt(input), _epochs if is_first_turn else 1, tuple(values.items())
        )
        text, reason, n_tokens = await self._next(request)
        stop_reason: Any = "max_tokens" if reason == "length" else "stop"
        output = ModelOutput.from_content(self.model_name, text, stop_reason)
        n_input = len(encoded(self._tokenizer, [request.prompt])[0])
        output.usage = ModelUsage(
            input_tokens=n_input, output_tokens=n_tokens, total_tokens=n_input + n_tokens
        )
        return output

    def _prompt(self, messages: list[ChatMessage]) -> str:
        if not self._is_chat:
            return "\n\n".join(message.text for message in messages)
        turns = [{"role": message.role, "content": message.text} for message in messages]
        return chat_prompt(self._tokenizer, turns)

    async def _next(self, request: Request) -> Drawn:
        self._waiting[request] += 1
        try:
            await anyio.sleep(WAIT_SECONDS)
            async with self._lock:
                if not self._drawn[request]:
                    like = [
                        each
                        for each, number in self._waiting.items()
                        if number and each[1:] == request[1:] and not self._drawn[each]
                    ]
                    await anyio.to_thread.run_sync(self._draw, like)
                return self._drawn[request].popleft()
        finally:
            self._waiting[request] -= 1

    def _draw(self, requests: list[Request]) -> None:
        """Draw the next responses to every prompt, under ids that no earlier ones had."""
        self._blocks.update(requests)
        ids = [
            f"{hashlib.sha256(each.prompt.encode()).hexdigest()[:16]}-{self._blocks[each]}"
            for each in requests
        ]
        _, num_samples, arguments = requests[0]
        prompts = dict(zip(ids, (each.prompt for each in requests), strict=True))
        with _one_line():
            table = self._sample(prompts, num_samples=num_samples, **dict(arguments))
            if len(table) < num_samples * len(requests):
                raise InputError("the strategy filters responses; use zerogap evaluate")
        for each, name in zip(requests, ids, strict=True):
            rows = table.loc[table.question_id == name, list(Drawn._fields)]
            self._drawn[each].extend(map(Drawn._make, rows.itertuples(index=False, name=None)))


@scorer(metrics=[mean(), stderr()])  # type: ignore[untyped-decorator]
def peakedness() -> Scorer:
    """1 for a response that nearly repeats the model's greedy response, else 0.

    The mean is CDD's peakedness (:func:`zerogap.analysis.overlap.peakedness`) in words instead of
    tokens. The model of the log answers each question once more, at temperature 0.
    """
    greedy: dict[str, list[str]] = {}
    lock = anyio.Lock()

    async def score(state: TaskState, target: Target) -> Score:
        replies = [k for k, message in enumerate(state.messages) if message.role == "assistant"]
        asked = state.messages[: replies[-1]] if replies else state.messages
        async with lock:
            if (key := str([(message.role, message.text) for message in asked])) not in greedy:
                output = await get_model().generate(asked, config=GenerateConfig(temperature=0))
                greedy[key] = output.completion.split()[:MAX_WORDS]
        words, reference = state.output.completion.split()[:MAX_WORDS], greedy[key]
        distance = Levenshtein.distance(words, reference)
        near = distance <= NEAR * max(len(words), len(reference))
        return Score(value=int(near), metadata={"edit_distance": distance})

    return score


@scorer(metrics=[mean(), stderr()])  # type: ignore[untyped-decorator]
def rule_disagreement() -> Scorer:
    """1 where extraction rules disagree on whether a response is correct, else 0."""

    async def score(state: TaskState, target: Target) -> Score:
        marks = {}
        for rule in RULES.values():
            if rule.accepts_gold(gold := target.text.rpartition("####")[2].strip()):
                grade = rule.grade(state.output.completion, rule.parse_gold(gold))
                marks[rule.name] = bool(grade.correct)
        return Score(value=int(len(set(marks.values())) > 1), metadata=marks)

    return score
