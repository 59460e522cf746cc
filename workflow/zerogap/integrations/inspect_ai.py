"""Inspect: the model provider `zerogap/FOLDER`, and two scorers, also for logs that exist.

Inspect imports this module through the entry points `inspect_ai`. It asks a question once per epoch
and request by request. All responses to a prompt are therefore drawn when the first one is wanted,
as many as the task has epochs and together with those to other prompts that wait. Epoch e gets the
e-th of them, whatever the number of connections and also if an interrupted task is continued.
"""

import functools
import hashlib
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args
from weakref import WeakKeyDictionary

import anyio
import anyio.lowlevel
import anyio.to_thread
import torch
from inspect_ai._util.error import PrerequisiteError  # Inspect shows it as one line
from inspect_ai.hooks import Hooks, TaskStart, hooks
from inspect_ai.log._samples import sample_active
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    Model,
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
from zerogap.errors import InputError, first_line
from zerogap.families.tokenizers import load_tokenizer
from zerogap.io.digests import file_digest, folder_digest, value_digest
from zerogap.sampling.api import sample
from zerogap.sampling.arguments import paths
from zerogap.sampling.responses import chat_prompt, encoded
from zerogap.strategies.base import build, filters

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
MAX_CONNECTIONS = 100  # by default; for each draw, Shortcut loads its base model
WAIT_SECONDS = 0.1  # for the requests of other samples, to draw for all of them at once
ChatTemplate = Literal["apply", "ignore"]
Dtype = Literal["float32", "bfloat16", "float16"]
WITHOUT_STRATEGY = {"strategy": "identity"}  # as extra_body: what a scorer asks
NEAR, MAX_WORDS = 0.05, 100  # of peakedness: share of words, and how many are compared

_epochs: dict[str, int] = {}  # of each task that runs, by its id


@hooks(name="epochs", description="Tells models of zerogap the number of epochs.")
class _Epochs(Hooks):  # type: ignore[misc]
    async def on_task_start(self, data: TaskStart) -> None:
        _epochs[data.eval_id] = data.spec.config.epochs or 1


class Request(NamedTuple):
    """A prompt, the id of its draws, how many there are, and arguments of `zerogap.sample`."""

    prompt: str
    name: str
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
        base_url: unused.
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
        PrerequisiteError: the folder is not a model's, or an argument is not one of its values.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig | None = None,
        strategy: str = "identity",
        chat_template: ChatTemplate = "apply",
        dtype: Dtype | None = None,
        base_model: str | None = None,
        neurons: str | None = None,
        **parameters: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config or GenerateConfig())
        dtype = dtype or ("bfloat16" if torch.cuda.is_available() else "float32")
        with _one_line():
            for value, values in ((chat_template, ChatTemplate), (dtype, Dtype)):
                if value not in get_args(values):
                    shown = ", ".join(get_args(values))
                    raise InputError(f"-M: must be one of {shown}, not {value}")
            paths(base_model, neurons, None)
            self._tokenizer = load_tokenizer(model_name)
            self._strategy = build({"class": strategy, "parameters": parameters})
            if filters(self._strategy):
                raise InputError("the strategy filters responses; use zerogap evaluate")
            self._sample = functools.partial(
                sample,
                loading.load(model_name, dtype),
                self._tokenizer,
                strategy=self._strategy,
                base_model=base_model,
                neurons=neurons,
            )
        self._is_chat = chat_template == "apply" and self._tokenizer.chat_template is not None
        # Inspect's cache tells models apart by name and address, and not by their arguments.
        folders = [folder_digest(Path(each)) for each in (model_name, base_model) if each]
        made_of = [*folders, *([file_digest(Path(neurons))] if neurons else [])]
        self.base_url = value_digest([made_of, repr(self._strategy), chat_template, dtype])
        self._lock = anyio.Lock()
        self._waiting: Counter[Request] = Counter()
        # (attempt, question) → the numbers of its requests that were not given up
        self._asked: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        self._drawn: dict[Request, list[Drawn]] = {}  # in the order of epochs

    def max_connections(self) -> int:
        """How many requests wait for each other: they are drawn together."""
        return MAX_CONNECTIONS

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
        is_plain = options.get("extra_body") == WITHOUT_STRATEGY and options.pop("extra_body")
        lists = [message.content for message in input if not isinstance(message.content, str)]
        unknown = {
            *(options.keys() - SAMPLING.keys() - NO_EFFECT),
            *({"tools"} if tools else ()),
            *({part.type for parts in lists for part in parts} - {"text", "reasoning"}),
        }
        if unknown:
            names = ", ".join(sorted(unknown))
            raise PrerequisiteError(f"zerogap: {names} is not supported; leave it out")
        values = {SAMPLING[name]: options[name] for name in SAMPLING if name in options}
        values |= {"strategy": None} if is_plain else {}
        values["stop"] = tuple(values.get("stop", ()))
        prompt = self._prompt(input)
        # Later turns differ between epochs: one response at a time.
        is_alone = is_plain or any(message.role == "assistant" for message in input)
        request, position, given_up = self._request(prompt, values, is_alone=is_alone)
        try:
            text, reason, n_tokens = await self._response(request, position)
            await anyio.lowlevel.checkpoint_if_cancelled()
        except BaseException:
            given_up()
            raise
        stop_reason: Any = "max_tokens" if reason == "length" else "stop"
        output = ModelOutput.from_content(self.model_name, text, stop_reason)
        n_input = len(encoded(self._tokenizer, [prompt])[0])
        output.usage = ModelUsage(
            input_tokens=n_input, output_tokens=n_tokens, total_tokens=n_input + n_tokens
        )
        return output

    def _prompt(self, messages: list[ChatMessage]) -> str:
        if not self._is_chat:
            return "\n\n".join(message.text for message in messages)
        turns = [{"role": message.role, "content": message.text} for message in messages]
        try:
            return chat_prompt(self._tokenizer, turns)
        except Exception as error:  # a template may raise anything
            raise PrerequisiteError(
                f"zerogap: the chat template does not write these messages ({first_line(error)}); "
                "change them, or use -M chat_template=ignore"
            ) from error

    def _request(
        self, prompt: str, values: dict[str, Any], *, is_alone: bool
    ) -> tuple[Request, int, Callable[[], None]]:
        """The request for the running sample's next response to a prompt.

        A sample that asks again, or another with the same prompt, gets other draws; an attempt that
        Inspect gives up does not count. Returns the position of the response among those drawn, and
        what to call in that case.
        """
        active = sample_active()
        sample_id, epoch = (active.sample.id, active.epoch) if active else ("", 1)
        question = hashlib.sha256(f"{sample_id}\n{prompt}".encode()).hexdigest()[:16]
        numbers = self._asked[active.id if active else "", question]
        number = next(each for each in itertools.count(1) if each not in numbers)
        numbers.add(number)
        given_up = functools.partial(numbers.discard, number)
        name, arguments = f"{question}-{number}", tuple(values.items())
        if is_alone:
            return Request(prompt, f"{name}-{epoch}", 1, arguments), 0, given_up
        epochs = _epochs.get(active.eval_id, 1) if active else 1
        return Request(prompt, name, max(epochs, epoch), arguments), epoch - 1, given_up

    async def _response(self, request: Request, position: int) -> Drawn:
        self._waiting[request] += 1
        try:
            await anyio.sleep(WAIT_SECONDS)
            async with self._lock:
                if request not in self._drawn:
                    like = [
                        each
                        for each in self._waiting
                        if each[2:] == request[2:] and each not in self._drawn
                    ]
                    try:
                        await anyio.to_thread.run_sync(self._draw, like)
                    except PrerequisiteError:  # perhaps about the prompt of another sample
                        if like == [request]:
                            raise
                        await anyio.to_thread.run_sync(self._draw, [request])
                return self._drawn[request][position]  # which stays: it may be asked for again
        finally:
            self._waiting[request] -= 1
            if not self._waiting[request]:
                del self._waiting[request]

    def _draw(self, requests: list[Request]) -> None:
        """Draw all responses to every prompt."""
        prompts = {each.name: each.prompt for each in requests}
        _, _, num_samples, arguments = requests[0]
        with _one_line():
            table = self._sample(prompts, num_samples=num_samples, **dict(arguments))
            if len(table) < num_samples * len(requests):
                raise InputError("the strategy filters responses; use zerogap evaluate")
        for each in requests:
            rows = table.loc[table.question_id == each.name, list(Drawn._fields)]
            self._drawn[each] = list(map(Drawn._make, rows.itertuples(index=False)))


@scorer(metrics=[mean(), stderr()])  # type: ignore[untyped-decorator]
def peakedness() -> Scorer:
    """1 for a response that nearly repeats the model's greedy response, else 0.

    The mean is CDD's peakedness (:func:`zerogap.analysis.overlap.peakedness`) in words instead of
    tokens, relative to the longer text of each pair. The model of the log answers each question
    once more, at temperature 0.
    """
    # By model: one scorer may score the logs of several.
    greedy: WeakKeyDictionary[Model, dict[str, list[str]]] = WeakKeyDictionary()
    lock = anyio.Lock()

    async def score(state: TaskState, target: Target) -> Score:
        replies = [k for k, message in enumerate(state.messages) if message.role == "assistant"]
        asked = state.messages[: replies[-1]] if replies else state.messages
        key, model = str([(message.role, message.text) for message in asked]), get_model()
        async with lock:
            known = greedy.setdefault(model, {})
            if key not in known:
                plain = WITHOUT_STRATEGY if str(model).startswith("zerogap/") else None
                config = GenerateConfig(temperature=0, extra_body=plain)
                output = await model.generate(asked, config=config)
                known[key] = output.completion.split()[:MAX_WORDS]
        words, reference = state.output.completion.split()[:MAX_WORDS], known[key]
        distance = Levenshtein.distance(words, reference)
        near = distance <= NEAR * max(len(words), len(reference))
        return Score(value=int(near), metadata={"edit_distance": distance})

    return score


@scorer(metrics=[mean(), stderr()])  # type: ignore[untyped-decorator]
def rule_disagreement() -> Scorer:
    """1 where extraction rules disagree on whether a response is correct, else 0.

    Not scored where fewer than two rules read the gold answer.
    """

    async def score(state: TaskState, target: Target) -> Score:
        marks = {}
        for rule in RULES.values():
            if rule.accepts_gold(gold := target.text.rpartition("####")[2].strip()):
                grade = rule.grade(state.output.completion, rule.parse_gold(gold))
                marks[rule.name] = bool(grade.correct)
        if len(marks) < 2:
            return Score.unscored(explanation=f"no two rules read the gold answer {gold!r}")
        return Score(value=int(len(set(marks.values())) > 1), metadata=marks)

    return score
