"""Many samples per question: the decoding loop.

The few-shot prefix is computed once, a question's own tokens once, and its samples read both
(:mod:`zerogap.decoding.cache`). Finished rows leave the batch and the next question's rows enter
it. What a strategy does to a step is one function on the batch's logits.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedTokenizerBase

from zerogap.decoding.randomness import uniforms
from zerogap.decoding.stops import StopStrings
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
class Sampling:
    """How to draw: config's `decoding` entry."""

    temperature: float
    max_new_tokens: int
    stop: list[str]
    samples: int = 1
    top_p: float = 1.0
    seed: int = 0
    stream: str = "strategies"
    batch_rows: int = 512


@dataclass
class Rows:
    """The batch as a strategy sees it, at the moment it edits the logits of the next token.

    Attributes:
        question: (R,) index of each row's question in the list of prompts.
        step: (R,) how many tokens the row has generated.
        tokens: (R, T) the tokens generated so far, right-padded with -1.
    """

    question: Tensor
    step: Tensor
    tokens: Tensor


class Decoder(Protocol):
    """What the loop drives: a :class:`zerogap.decoding.cache.CachedModel` or a pair of them."""

    device: torch.device

    def prefill_prefix(self, token_ids: list[int]) -> None: ...
    def admit(self, questions: list[list[int]], copies: int) -> Tensor: ...
    def step(self, tokens: Tensor) -> Tensor: ...
    def keep(self, rows: Tensor) -> None: ...


Edit = Callable[[Tensor, Rows], Tensor]
_BLOCK = 64  # tokens summed together when a token is drawn


def greedy(
    decoder: Decoder,
    prompts: list[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    sampling: Sampling,
) -> list[Response]:
    """Each prompt's greedy trajectory, with the entropy (nats) of every step's distribution."""
    trajectories = dict(_decode(decoder, prompts, tokenizer, sampling, copies=1, edit=None))
    return [trajectories[index][0] for index in range(len(prompts))]


def sample(
    decoder: Decoder,
    prompts: list[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    sampling: Sampling,
    edit: Edit | None = None,
) -> Iterator[tuple[int, list[Response]]]:
    """Draw `sampling.samples` responses to every prompt.

    Args:
        edit: the strategy's change to a step's logits (R, V), before the temperature.

    Yields:
        (index of the prompt, its responses in order of sample id), as questions finish.

    Raises:
        InputError: a tokenizer without an end token, or logits that are not numbers.
    """
    return _decode(decoder, prompts, tokenizer, sampling, copies=sampling.samples, edit=edit)


def shared_prefix(prompts: list[Prompt]) -> int:
    """Length of the longest common beginning that leaves every prompt a token of its own."""
    shortest = min(len(prompt.token_ids) for prompt in prompts)
    columns = zip(*(prompt.token_ids for prompt in prompts), strict=False)
    for length, column in enumerate(columns):
        if len(set(column)) > 1 or length == shortest - 1:
            return length
    return 0


@torch.inference_mode()
def _decode(
    decoder: Decoder,
    prompts: list[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    sampling: Sampling,
    copies: int,
    edit: Edit | None,
) -> Iterator[tuple[int, list[Response]]]:
    """The loop. `edit` None and one copy is the greedy pass, which records entropies."""
    take_greedy = sampling.temperature == 0
    device = decoder.device
    if tokenizer.eos_token_id is None:
        raise InputError("the tokenizer has no end token (eos_token): no response would ever end")
    stops = StopStrings(tokenizer, sampling.stop, device)
    prefix = shared_prefix(prompts)
    if prefix == 0:
        raise InputError("the prompts share no first token; give them a common few-shot prefix")
    decoder.prefill_prefix(prompts[0].token_ids[:prefix])

    batch = _Batch(sampling.max_new_tokens, device)
    waiting = iter(range(len(prompts)))
    left = len(prompts)
    done: dict[int, dict[int, Response]] = {}
    logits = None
    n_dead = 0
    while left or len(batch.question):
        room = max(0, sampling.batch_rows - len(batch.question)) // copies
        if left and (room or not len(batch.question)):
            fresh = [next(waiting) for _ in range(min(max(room, 1), left))]
            left -= len(fresh)
            new = decoder.admit([prompts[index].token_ids[prefix:] for index in fresh], copies)
            new = new.repeat_interleave(copies, dim=0)
            logits = new if logits is None else torch.cat([logits, new])
            draws = None
            if not take_greedy:
                draws = [
                    uniforms(
                        sampling.seed,
                        sampling.stream,
                        prompts[index].question_id,
                        range(copies),
                        sampling.max_new_tokens,
                    )
                    for index in fresh
                ]
            batch.admit(fresh, copies, stops, draws)

        if edit is not None:
            logits = edit(logits, Rows(batch.question, batch.step, batch.tokens))
        if take_greedy:
            tokens = logits.argmax(-1)
            batch.entropy.scatter_(1, batch.column, _entropy(logits)[:, None])
        else:
            tokens = draw(logits, batch.uniform_now(), sampling.temperature, sampling.top_p)
        batch.append(tokens, stops.advance(batch.stop_state, tokens))

        ended = tokens == tokenizer.eos_token_id
        stopped = stops.reached(batch.stop_state)
        broken = logits.sum(-1).isnan()
        over = batch.alive & (ended | stopped | broken | (batch.step == sampling.max_new_tokens))
        finished = over.nonzero()[:, 0].tolist()  # the step's one synchronisation
        if finished and broken[over].any():
            row = int((batch.alive & broken).nonzero()[0])
            raise InputError(
                f"question {prompts[int(batch.question[row])].question_id}: the model's logits are "
                f"not numbers (NaN) at step {int(batch.step[row])}; was it trained in its dtype?"
            )
        for row in finished:
            reason = "eos" if ended[row] else "stop" if stopped[row] else "length"
            question, which, response = batch.response(row, reason, take_greedy)
            mine = done.setdefault(question, {})
            mine[which] = response
            if len(mine) == copies:
                yield question, [mine[i] for i in range(copies)]
                del done[question]
        batch.alive &= ~over
        n_dead += len(finished)
        # Finished rows ride along until an eighth of the batch is done: leaving costs a copy.
        if n_dead * 8 >= len(tokens):
            remaining = batch.alive.nonzero()[:, 0]
            batch.keep(remaining)
            decoder.keep(remaining)
            tokens = tokens[remaining]
            n_dead = 0
        logits = decoder.step(tokens) if len(tokens) else None


def draw(logits: Tensor, uniform: Tensor, temperature: float, top_p: float = 1.0) -> Tensor:
    """Tokens (R,) by inverse-CDF from softmax(logits (R, V) / temperature) and uniforms (R,)."""
    probabilities = (logits.float() / temperature).softmax(-1)
    if top_p < 1:
        ordered, order = probabilities.sort(dim=-1, descending=True)
        outside = ordered.cumsum(-1) - ordered >= top_p
        ordered = ordered.masked_fill(outside, 0)
        probabilities = torch.zeros_like(probabilities).scatter_(1, order, ordered)
    return _inverse_cdf(probabilities, uniform)


def _inverse_cdf(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """The token at which the running sum of (R, V) passes uniform (R,) × total, in two levels.

    First the block, then the token in it: running sums over the whole vocabulary would cost more
    than the rest of the step's sampling. A token of probability 0 is never returned.
    """
    rows, size = probabilities.shape
    blocks = F.pad(probabilities, (0, -size % _BLOCK)).view(rows, -1, _BLOCK)
    sums = blocks.sum(-1).cumsum(-1, dtype=torch.float64)
    threshold = uniform[:, None] * sums[:, -1:]
    block = torch.searchsorted(sums, threshold, right=True).clamp(max=sums.shape[1] - 1)
    before = sums.gather(1, (block - 1).clamp(min=0)).masked_fill(block == 0, 0.0)
    inside = blocks.gather(1, block[:, :, None].expand(-1, -1, _BLOCK))[:, 0]
    running = inside.cumsum(-1, dtype=torch.float64)
    # The block's own sum and its running sum may round differently: stay on its last real token.
    last = ((inside > 0) * torch.arange(1, _BLOCK + 1, device=inside.device)).amax(-1) - 1
    place = torch.searchsorted(running, threshold - before, right=True)[:, 0]
    return block[:, 0] * _BLOCK + torch.minimum(place, last)


def _entropy(logits: Tensor) -> Tensor:
    """Entropy (R,) in nats of softmax(logits (R, V))."""
    logs = logits.float().log_softmax(-1)
    return -(logs.exp() * logs.nan_to_num(neginf=0.0)).sum(-1)


class _Batch:
    """The rows' own state, beside the decoder's cache and in the same order."""

    def __init__(self, max_new_tokens: int, device: torch.device) -> None:
        self._max = max_new_tokens
        self._device = device
        empty = torch.zeros(0, dtype=torch.long, device=device)
        self.question, self.sample, self.step = empty, empty, empty
        self.alive = empty.bool()
        self.tokens = torch.zeros(0, max_new_tokens, dtype=torch.long, device=device)
        self.entropy = torch.zeros(0, max_new_tokens, device=device)
        self.stop_state: Tensor | None = None
        self.uniform: Tensor | None = None

    def admit(
        self, questions: list[int], copies: int, stops: StopStrings, draws: list | None
    ) -> None:
        rows = copies * len(questions)
        new = torch.tensor(questions, device=self._device).repeat_interleave(copies)
        sample = torch.arange(copies, device=self._device).repeat(len(questions))
        self.question = torch.cat([self.question, new])
        self.sample = torch.cat([self.sample, sample])
        self.step = torch.cat([self.step, torch.zeros_like(new)])
        self.alive = torch.cat([self.alive, torch.ones_like(new, dtype=torch.bool)])
        self.tokens = torch.cat([self.tokens, new.new_full((rows, self._max), -1)])
        self.entropy = torch.cat([self.entropy, self.entropy.new_zeros(rows, self._max)])
        start = stops.start(rows).to(self._device)
        self.stop_state = start if self.stop_state is None else torch.cat([self.stop_state, start])
        if draws is not None:
            block = torch.cat([torch.from_numpy(part) for part in draws]).to(self._device)
            self.uniform = block if self.uniform is None else torch.cat([self.uniform, block])

    def uniform_now(self) -> Tensor:
        return self.uniform.gather(1, self.column)[:, 0]

    @property
    def column(self) -> Tensor:
        """(R, 1) where the next token goes; a finished row's stays inside the table."""
        return self.step.clamp(max=self._max - 1)[:, None]

    def append(self, tokens: Tensor, stop_state: Tensor) -> None:
        self.tokens.scatter_(1, self.column, tokens[:, None])
        self.step = self.step + self.alive
        self.stop_state = stop_state

    def response(self, row: int, reason: str, with_entropy: bool) -> tuple[int, int, Response]:
        length = int(self.step[row])
        tokens = self.tokens[row, :length].tolist()
        entropy = self.entropy[row, :length].tolist() if with_entropy else []
        return int(self.question[row]), int(self.sample[row]), Response(tokens, reason, entropy)

    def keep(self, rows: Tensor) -> None:
        self.question, self.sample = self.question[rows], self.sample[rows]
        self.step, self.tokens = self.step[rows], self.tokens[rows]
        self.alive = self.alive[rows]
        self.entropy, self.stop_state = self.entropy[rows], self.stop_state[rows]
        if self.uniform is not None:
            self.uniform = self.uniform[rows]
