"""Many samples per question: the decoding loop.

The few-shot prefix is computed once, a question's own tokens once, and its samples read both
(:mod:`zerogap.engine.prompt_cache`). Samples of a question that have drawn the same tokens so far are
one row of the batch: they see the same logits, until their draws part them. A row that ends leaves
the batch at once, and the next question enters as soon as there is room for all its samples. What
a strategy does to a step is one function on the batch's logits.

A step's bookkeeping is done on the host, from one transfer of the drawn tokens.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from zerogap.engine import memory
from zerogap.engine.prompt_cache import Capacity
from zerogap.engine.randomness import uniforms
from zerogap.engine.stop_strings import StopStrings
from zerogap.errors import InputError


@dataclass(frozen=True)
class Prompt:
    """A question's whole prompt, few-shot part included, as the tokenizer gives it."""

    question_id: str
    token_ids: list[int]


@dataclass(frozen=True)
class Response:
    """Generated tokens (the end token included) and why they end: eos, stop or length."""

    token_ids: list[int]
    finish_reason: str
    entropy: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class SamplingParams:
    """How to draw: config's `decoding` entry.

    Attributes:
        batch_rows: how many samples are decoded together; changes no draw. None: as many as fit
            the memory (:func:`batch_rows`).
        exact: decode each question by itself, so that not even the rounding of its logits depends
            on what else is in the batch.
    """

    temperature: float
    max_new_tokens: int
    stop: list[str]
    samples: int = 1
    top_p: float = 1.0
    seed: int = 0
    stream: str = "strategies"
    batch_rows: int | None = None
    exact: bool = False

    @classmethod
    def of(cls, decoding: Mapping[str, Any], **own: Any) -> Self:
        """From config's `decoding` entry; `own` is what the job adds or has otherwise."""
        rows = decoding["batch_rows"]
        return cls(
            **{
                "temperature": decoding["temperature"],
                "top_p": decoding["top_p"],
                "max_new_tokens": decoding["max_new_tokens"],
                "stop": decoding["stop"],
                "samples": decoding["samples"],
                "batch_rows": None if rows == "auto" else rows,
                "exact": decoding["exact"],
                **own,
            }
        )


@dataclass
class Rows:
    """The batch as a strategy sees it, at the moment it edits the logits of the next token.

    The tensors lie on the host wherever the model is: what they say of a step is known there
    before the device has computed its logits. A row stands for all samples of a question that have
    drawn the same tokens so far.

    Attributes:
        question: (R,) index of each row's question in the list of prompts.
        step: (R,) how many tokens the row has generated.
        tokens: (R, T) the tokens generated so far, right-padded with -1.
    """

    question: Tensor
    step: Tensor
    tokens: Tensor


class Decoder(Protocol):
    """What the loop drives: a `SharedPromptDecoder`, a `HFDecoder` or a pair of them."""

    model: PreTrainedModel  # whose logits they are
    device: torch.device
    single_prompt_only: bool  # whether it takes one question at a time
    preallocates: bool  # whether `reserve` takes the room at once, so that nothing grows

    def reserve(self, capacity: Capacity | None) -> None: ...
    def prefill_prefix(self, token_ids: list[int]) -> None: ...
    def prefill_prompts(self, questions: list[list[int]]) -> Tensor: ...
    def step(self, tokens: Tensor) -> Tensor: ...
    def reorder(self, rows: np.ndarray) -> None: ...
    def kv_bytes(self) -> int: ...  # of the prefix


Edit = Callable[[Tensor, Rows], Tensor]
_SHARE = 0.8  # of the free memory; the rest is the allocator's and the forward pass's own
# Samples together at the most: beyond it arithmetic binds (docs/benchmarks/README.md), memory is
# taken for nothing, and a batch drains for longer.
_MOST = {"cpu": 512, "cuda": 1024}
_LINGERING = 3  # times as many questions as enter together are there: of some a few rows remain
_BLOCK = 64  # tokens summed together when a token is drawn
_RUN = 1 << 18  # logits that a CPU turns into probabilities at once: a megabyte of them
_PREFILL = 32  # questions read together, each beside a copy of the prefix: bounds that memory
_SORT = 16  # every so many steps rows are put in order of their length
_NO_NUMBER = -1  # drawn where logits are not numbers


def greedy(
    decoder: Decoder,
    prompts: list[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    sampling: SamplingParams,
) -> list[Response]:
    """Each prompt's greedy trajectory, with the entropy (nats) of every step's distribution."""
    chosen = range(len(prompts))
    trajectories = dict(_decode(decoder, prompts, tokenizer, sampling, chosen, copies=1))
    return [trajectories[index][0] for index in chosen]


def sample(
    decoder: Decoder,
    prompts: list[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    sampling: SamplingParams,
    edit: Edit | None = None,
    chosen: Sequence[int] | None = None,
) -> Iterator[tuple[int, list[Response]]]:
    """Draw `sampling.samples` responses to every prompt.

    Args:
        edit: the strategy's change to a step's logits (R, V), before the temperature.
        chosen: sample only these prompts (their indices). The prefix stays what all of them share.

    Yields:
        (index of the prompt, its responses in order of sample id), as questions finish.

    Raises:
        InputError: a tokenizer without an end token, or logits that are not numbers.
    """
    chosen = range(len(prompts)) if chosen is None else chosen
    return _decode(decoder, prompts, tokenizer, sampling, chosen, sampling.samples, edit)


def shared_prefix(prompts: list[Prompt]) -> int:
    """Length of the longest common beginning that leaves every prompt a token of its own."""
    shortest = min(len(prompt.token_ids) for prompt in prompts)
    columns = zip(*(prompt.token_ids for prompt in prompts), strict=False)
    for length, column in enumerate(columns):
        if len(set(column)) > 1 or length == shortest - 1:
            return length
    return 0


def batch_rows(decoder: Decoder, prompts: list[Prompt], sampling: SamplingParams) -> int:
    """How many samples fit the free memory together; one question's at the least, and no more than
    make the steps faster.

    What a token's keys and values take is measured on the prompts' shared prefix.
    """
    if decoder.single_prompt_only:
        return sampling.samples
    prefix = prompts[0].token_ids[: max(1, shared_prefix(prompts))]
    decoder.reserve(None)  # whatever an earlier batch has taken
    decoder.prefill_prefix(prefix)
    longest = max(len(prompt.token_ids) for prompt in prompts)
    question = (longest - len(prefix)) * min(1, _LINGERING / sampling.samples)
    ahead = 1 if decoder.preallocates else 1.5  # what grows does so by half
    own = ahead * (sampling.max_new_tokens + question) * decoder.kv_bytes() / len(prefix)
    # The step's largest tensors, in float32 beside the model's own type: logits, their
    # exponentials and running sums; attention scores and weights of one layer.
    config = decoder.model.config.get_text_config()
    seen = longest + sampling.max_new_tokens
    step = 24 * config.vocab_size + 12 * config.num_attention_heads * seen
    fitting = int(_SHARE * memory.free_bytes(decoder.device) / (own + step))
    return max(sampling.samples, min(_MOST[decoder.device.type], fitting))


@torch.inference_mode()
def _decode(
    decoder: Decoder,
    prompts: list[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    sampling: SamplingParams,
    chosen: Sequence[int],
    copies: int,
    edit: Edit | None = None,
) -> Iterator[tuple[int, list[Response]]]:
    """The loop. Temperature 0 is the greedy pass, which records entropies."""
    take_greedy = sampling.temperature == 0
    device = decoder.device
    if tokenizer.eos_token_id is None:
        raise InputError("the tokenizer has no end token (eos_token): no response would ever end")
    stops = StopStrings(tokenizer, sampling.stop)
    together = sampling.batch_rows or batch_rows(decoder, prompts, sampling)
    prefix = shared_prefix(prompts)
    alone = sampling.exact or decoder.single_prompt_only
    largest = Capacity(
        rows=max(together, copies),
        copies=copies,
        columns=sampling.max_new_tokens,
        questions=max(1, min(together, _LINGERING * together // copies)),
        longest=max(len(prompt.token_ids) for prompt in prompts) - prefix,
    )
    # A padded step is rounded by what it is padded to: exact mode does without.
    decoder.reserve(None if alone else largest)
    decoder.prefill_prefix(prompts[0].token_ids[:prefix])

    batch = _Batch(sampling, stops, tokenizer.eos_token_id)
    waiting = list(chosen)
    logits = None
    while waiting or batch.samples:
        room = (together - batch.samples) // copies
        if not batch.samples:
            room = 1 if alone else max(1, room)
        elif alone:
            room = 0
        if fresh := waiting[: min(room, _PREFILL)]:
            del waiting[: len(fresh)]
            new = decoder.prefill_prompts([prompts[index].token_ids[prefix:] for index in fresh])
            logits = new if logits is None else torch.cat([logits, new])
            batch.add(fresh, [prompts[index].question_id for index in fresh], copies)

        if edit is not None:
            logits = edit(logits, batch.rows())
        entropy = None
        uniform, row = (memory.to_device(part, device) for part in batch.draws())
        if take_greedy:
            tokens = logits.argmax(-1).masked_fill_(logits.sum(-1).isnan(), _NO_NUMBER)[row]
            entropy = _entropy(logits)[row]
        else:
            tokens = draw(logits, uniform, sampling.temperature, sampling.top_p, row)
        tokens = tokens.cpu().numpy()  # the step's one wait for the device
        if (tokens == _NO_NUMBER).any():
            question, step = batch.whereabouts(int((tokens == _NO_NUMBER).argmax()))
            raise InputError(
                f"question {prompts[question].question_id}: the model's logits are not numbers "
                f"(NaN) at step {step}; was it trained in its dtype?"
            )
        rows = batch.append(tokens, None if entropy is None else entropy.cpu().numpy())
        yield from batch.finished()
        decoder.reorder(rows)
        logits = decoder.step(batch.last_tokens(device)) if batch.samples else None


def draw(
    logits: Tensor,
    uniform: Tensor,
    temperature: float,
    top_p: float = 1.0,
    row: Tensor | None = None,
) -> Tensor:
    """Tokens (N,) by inverse-CDF from softmax(logits (R, V) / temperature) and uniforms (N,).

    Args:
        row: (N,) the row of logits that each uniform draws from; one each without it.

    Returns:
        The tokens; -1 where a row's logits are not numbers.
    """
    if row is None:
        row = torch.arange(len(logits), device=logits.device)
    if logits.device.type == "cpu" and logits.dtype == torch.bfloat16 and top_p == 1:
        from zerogap.engine import cpu_kernels  # numba: only where it is used

        return cpu_kernels.draw(logits, uniform, temperature, row)
    # On a CPU a few rows at a time, which stay in the processor's cache: it waits for memory.
    run = max(1, _RUN // logits.shape[1]) if logits.device.type == "cpu" else len(logits)
    if run >= len(logits):
        return _inverse_cdf(_probabilities(logits, temperature, top_p), uniform, row)
    tokens = torch.empty_like(row)
    parts = logits.split(run)
    members = row.argsort().split(torch.bincount(row // run, minlength=len(parts)).tolist())
    for part, mine in zip(parts, members, strict=True):
        probabilities = _probabilities(part, temperature, top_p)
        tokens[mine] = _inverse_cdf(probabilities, uniform[mine], row[mine] % run)
    return tokens


def _probabilities(logits: Tensor, temperature: float, top_p: float) -> Tensor:
    """softmax(logits (R, V) / temperature) in float32; of top_p the tokens outside are 0."""
    probabilities = (logits.float() / temperature).softmax(-1)
    if top_p < 1:
        ordered, order = probabilities.sort(dim=-1, descending=True)
        outside = ordered.cumsum(-1) - ordered >= top_p
        ordered = ordered.masked_fill(outside, 0)
        probabilities = torch.zeros_like(probabilities).scatter_(1, order, ordered)
    return probabilities


def _inverse_cdf(probabilities: Tensor, uniform: Tensor, row: Tensor) -> Tensor:
    """The token at which the running sum of a row of (R, V) passes uniform (N,) × its total.

    First the block, then the token in it: running sums over the whole vocabulary would cost more
    than the rest of the step's sampling. A token of probability 0 is never returned.
    """
    rows, size = probabilities.shape
    if size % _BLOCK:
        probabilities = F.pad(probabilities, (0, -size % _BLOCK))
    blocks = probabilities.view(rows, -1, _BLOCK)
    sums = blocks.sum(-1).cumsum(-1, dtype=torch.float64)[row]
    threshold = uniform[:, None] * sums[:, -1:]
    block = torch.searchsorted(sums, threshold, right=True).clamp(max=sums.shape[1] - 1)
    before = sums.gather(1, (block - 1).clamp(min=0)).masked_fill(block == 0, 0.0)
    inside = blocks[row, block[:, 0]]
    running = inside.cumsum(-1, dtype=torch.float64)
    # The block's own sum and its running sum may round differently: stay on its last real token.
    last = ((inside > 0) * torch.arange(1, _BLOCK + 1, device=inside.device)).amax(-1) - 1
    place = torch.searchsorted(running, threshold - before, right=True)[:, 0]
    token = block[:, 0] * _BLOCK + torch.minimum(place, last)
    return token.masked_fill(sums[:, -1].isnan(), _NO_NUMBER)


def _entropy(logits: Tensor) -> Tensor:
    """Entropy (R,) in nats of softmax(logits (R, V))."""
    logs = logits.float().log_softmax(-1)
    return -(logs.exp() * logs.nan_to_num(neginf=0.0)).sum(-1)


class _Batch:
    """Which samples are being drawn and what their rows hold, beside the decoder's cache.

    Rows (R): a question's distinct responses so far. Members (N): the samples, each in a row.
    """

    def __init__(self, sampling: SamplingParams, stops: StopStrings, end_token: int) -> None:
        self._sampling, self._stops, self._end_token = sampling, stops, end_token
        none = np.zeros(0, dtype=np.int64)
        self._question, self._step = none, none  # (R,)
        self._tokens = np.zeros((0, sampling.max_new_tokens), dtype=np.int64)  # (R, T)
        self._stop_state = stops.start(0)  # (R, number of stop strings)
        self._row, self._sample = none, none  # (N,)
        self._uniform = np.zeros((0, sampling.max_new_tokens))  # (N, T)
        self._entropy = np.zeros((0, sampling.max_new_tokens))  # (N, T), of the greedy pass
        self._responses: dict[int, list[Response | None]] = {}
        self._missing: dict[int, int] = {}
        self._steps_taken = 0

    @property
    def samples(self) -> int:
        return len(self._row)

    def add(self, questions: list[int], question_ids: list[str], copies: int) -> None:
        """One row for each question, with all its samples in it."""
        rows = len(self._question) + np.arange(len(questions))
        fresh = np.full((len(questions), self._tokens.shape[1]), -1)
        self._question = np.concatenate([self._question, questions])
        self._step = np.concatenate([self._step, np.zeros_like(rows)])
        self._tokens = np.concatenate([self._tokens, fresh])
        self._stop_state = np.concatenate([self._stop_state, self._stops.start(len(rows))])
        self._row = np.concatenate([self._row, rows.repeat(copies)])
        self._sample = np.concatenate([self._sample, np.tile(np.arange(copies), len(rows))])
        if self._sampling.temperature == 0:
            more = np.zeros((len(rows), self._tokens.shape[1]))
            self._entropy = np.concatenate([self._entropy, more])
        else:
            seed, stream = self._sampling.seed, self._sampling.stream
            steps = self._sampling.max_new_tokens
            numbers = [uniforms(seed, stream, name, range(copies), steps) for name in question_ids]
            self._uniform = np.concatenate([self._uniform, *numbers])
        for question in questions:
            self._responses[question] = [None] * copies
            self._missing[question] = copies

    def rows(self) -> Rows:
        """The rows as a strategy sees them."""
        return Rows(*map(torch.from_numpy, (self._question, self._step, self._tokens)))

    def draws(self) -> tuple[np.ndarray, np.ndarray]:
        """Every member's uniform (N,) for this step, and the row (N,) it draws from."""
        if not len(self._uniform):  # the greedy pass draws nothing
            return np.zeros(self.samples), self._row
        return self._uniform[np.arange(self.samples), self._step[self._row]], self._row

    def whereabouts(self, member: int) -> tuple[int, int]:
        """Question and step of a member."""
        return int(self._question[self._row[member]]), int(self._step[self._row[member]])

    def last_tokens(self, device: torch.device) -> Tensor:
        """The newest token (R,) of every row."""
        newest = self._tokens[np.arange(len(self._step)), self._step - 1]
        return memory.to_device(newest, device)

    def append(self, tokens: np.ndarray, entropy: np.ndarray | None) -> np.ndarray:
        """Give every member its drawn token (N,); ended ones leave, rows part where draws differ.

        Returns:
            The rows to go on with (R',), by their present numbers. Most stay where they are: of a
            row's different continuations the first does, the others and the last rows fill gaps.
        """
        row = self._row
        step = self._step[row]
        states = self._stops.advance(self._stop_state[row], tokens)
        if entropy is not None:
            self._entropy[np.arange(len(row)), step] = entropy
        ended, stopped = tokens == self._end_token, self._stops.reached(states)
        over = ended | stopped | (step + 1 == self._sampling.max_new_tokens)
        for member in over.nonzero()[0]:
            reason = "eos" if ended[member] else "stop" if stopped[member] else "length"
            self._finish(member, int(tokens[member]), reason)

        on = ~over
        pairs = row[on] * (tokens.max(initial=0) + 1) + tokens[on]
        _, first, child = np.unique(pairs, return_index=True, return_inverse=True)
        parent = row[on][first]  # ascending: the continuations of a row stand side by side
        place = self._places(parent)
        rows = np.empty_like(parent)
        rows[place] = parent

        self._question, self._step = self._question[rows], self._step[rows]
        self._tokens = self._tokens[rows]
        self._stop_state = np.empty((len(rows), states.shape[1]), dtype=states.dtype)
        self._tokens[place, self._step[place]] = tokens[on][first]
        self._stop_state[place] = states[on][first]
        self._step += 1
        self._row, self._sample = place[child], self._sample[on]
        if len(self._uniform):
            self._uniform = self._uniform[on]
        else:
            self._entropy = self._entropy[on]
        return rows

    def _places(self, parent: np.ndarray) -> np.ndarray:
        """Where each continuation of rows `parent` (R',) goes, as a permutation of 0 … R'-1."""
        self._steps_taken += 1
        if self._steps_taken % _SORT == 0:
            order = np.argsort(-self._step[parent], kind="stable")
            place = np.empty_like(order)
            place[order] = np.arange(len(order))
            return place
        stays = np.ones(len(parent), dtype=bool)
        stays[1:] = parent[1:] != parent[:-1]
        stays &= parent < len(parent)
        place = parent.copy()
        place[~stays] = np.setdiff1d(np.arange(len(parent)), parent[stays], assume_unique=True)
        return place

    def finished(self) -> Iterator[tuple[int, list[Response]]]:
        """Questions whose responses are all there, once each."""
        for question in [index for index, missing in self._missing.items() if not missing]:
            del self._missing[question]
            yield question, self._responses.pop(question)

    def _finish(self, member: int, token: int, reason: str) -> None:
        row, which = self._row[member], self._sample[member]
        length, question = int(self._step[row]), int(self._question[row])
        entropy = self._entropy[member, : length + 1].tolist() if len(self._entropy) else []
        tokens = [*self._tokens[row, :length].tolist(), token]
        self._responses[question][which] = Response(tokens, reason, entropy)
        self._missing[question] -= 1
