"""The decoding loop: many samples per question from one model.

The few-shot prefix is computed once, each question's tokens once, and all samples of the question
share both (:mod:`zerogap.engine.prompt_cache`). Samples of a question that have drawn the same
tokens so far share one row of the batch: they see the same logits until their draws differ. A
finished row leaves the batch at once, and the next question enters as soon as there is room for all
its samples. A strategy is one function that edits the logits of a step.

All bookkeeping is done on the host, from one transfer of the drawn tokens per step.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import nullcontext

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from zerogap.engine import memory
from zerogap.engine.batch import Batch
from zerogap.engine.decoder import (
    Capacity,
    Decoder,
    Edit,
    IntArray,
    Prompt,
    Response,
    Rows,
    SamplingParams,
    to_device,
)
from zerogap.engine.drawing import NOT_A_NUMBER, draw, entropy, most_likely
from zerogap.engine.generation_config import end_tokens
from zerogap.engine.output_head import float32_logits
from zerogap.engine.stop_strings import StopStrings
from zerogap.errors import InputError

MEMORY_FRACTION = 0.8  # of the free memory; the rest is for the allocator and the forward pass
# More samples than this hardly make a row faster (docs/engine.md) and need more memory.
MAX_BATCH_SIZE = {"cpu": 512, "cuda": 1024}
# Questions that may be in the batch, as a multiple of those whose samples all fit: late in a
# question's life few of its rows are left.
MAX_PROMPTS_FACTOR = 3
MEASURED_TOKENS = 16  # whose keys and values show the memory of one
MAX_PREFILL_PROMPTS = 32  # prompts per prefill; each needs a copy of the prefix meanwhile


def greedy(
    decoder: Decoder,
    prompts: list[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    sampling: SamplingParams,
) -> list[Response]:
    """Each prompt's greedy trajectory, with the entropy (nats) of every step's distribution.

    Tokens and entropies come from logits in float32 (:mod:`zerogap.engine.output_head`). Arguments
    and errors as in :func:`sample`; the temperature is 0.
    """
    one_each = dataclasses.replace(sampling, num_samples=1)
    trajectories = dict(sample(decoder, prompts, tokenizer, one_each))
    return [trajectories[index][0] for index in range(len(prompts))]


def sample(
    decoder: Decoder,
    prompts: list[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    sampling: SamplingParams,
    edit: Edit | None = None,
    indices: Sequence[int] | None = None,
) -> Iterator[tuple[int, list[Response]]]:
    """Draw `sampling.num_samples` responses to every prompt.

    At temperature 0 every token is the most likely one, by logits in float32. `edit` changes the
    logits (R, V) of a step, before the temperature. With `indices`, only these prompts are sampled;
    the shared prefix remains that of all.

    Yields:
        (index of the prompt, its responses in order of sample id), as questions finish.

    Raises:
        InputError: the model has no end token, a stop string is empty, too long or cannot occur,
            an edit returns no logits, or logits are NaN.
    """
    if indices is None:
        indices = range(len(prompts))
    is_greedy = sampling.temperature == 0
    with float32_logits(decoder.model) if is_greedy else nullcontext(False) as changes_steps:
        if changes_steps:
            decoder.reserve(None)  # steps that were captured with other logits
        try:
            yield from _decode(decoder, prompts, tokenizer, sampling, indices, edit)
        finally:  # also if the caller takes only some of the responses
            if changes_steps:
                decoder.reserve(None)


def shared_prefix_length(prompts: list[Prompt]) -> int:
    """Length of the longest common prefix that leaves every prompt at least one token."""
    shortest = min(len(prompt.token_ids) for prompt in prompts)
    columns = zip(*(prompt.token_ids for prompt in prompts), strict=False)
    for length, column in enumerate(columns):
        if len(set(column)) > 1 or length == shortest - 1:
            return length
    return 0


def auto_batch_size(decoder: Decoder, prompts: list[Prompt], sampling: SamplingParams) -> int:
    """How many samples fit in the free memory together.

    At least the samples of one question, at most :data:`MAX_BATCH_SIZE`. The memory of one
    token's keys and values is measured on a few tokens rather than computed from the model's
    configuration, so that it is right for every architecture. It does not depend on speed: a batch
    size measured in time would differ between runs, and with it the rounding of the logits.
    """
    if decoder.single_prompt_only:
        return sampling.num_samples
    measured = prompts[0].token_ids[:MEASURED_TOKENS]
    decoder.reserve(None)  # releases what an earlier batch has taken
    decoder.prefill_prefix(measured)
    longest = max(len(prompt.token_ids) for prompt in prompts)
    own_tokens = longest - max(1, shared_prefix_length(prompts))
    question_tokens = own_tokens * min(1, MAX_PROMPTS_FACTOR / sampling.num_samples)
    tokens_per_sample = sampling.max_new_tokens + question_tokens
    kv_bytes = tokens_per_sample * decoder.kv_bytes() / len(measured)
    # The largest tensors of a step, in float32 and in the model's type: logits, their exponentials
    # and running sums; attention scores and weights of one layer.
    config = decoder.model.config.get_text_config()
    context = longest + sampling.max_new_tokens
    per_logit = 24 if sampling.top_p == 1 else 48  # which sorts them
    step_bytes = per_logit * config.vocab_size + 12 * config.num_attention_heads * context
    free_bytes = MEMORY_FRACTION * memory.free_bytes(decoder.device)
    fitting = int(free_bytes / (kv_bytes + step_bytes))
    return max(sampling.num_samples, min(MAX_BATCH_SIZE[decoder.device.type], fitting))


@torch.inference_mode()
def _decode(
    decoder: Decoder,
    prompts: list[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    sampling: SamplingParams,
    indices: Sequence[int],
    edit: Edit | None,
) -> Iterator[tuple[int, list[Response]]]:
    """The loop of greedy decoding (temperature 0) and of sampling.

    One turn: admit prompts, draw from the logits, append the tokens, compute the next logits.
    """
    ends = end_tokens(tokenizer, decoder.model.generation_config)
    if not ends:
        raise InputError(
            "the model has no end token, so no response would ever end; set the tokenizer's "
            "eos_token"
        )
    num_samples = sampling.num_samples
    batch = Batch(sampling, StopStrings(tokenizer, sampling.stop), ends)
    if sampling.batch_size == "auto":
        batch_size = auto_batch_size(decoder, prompts, sampling)
    else:  # a question's samples enter together
        batch_size = max(sampling.batch_size, num_samples)
    prefix_length = shared_prefix_length(prompts)
    one_at_a_time = sampling.batch_invariant or decoder.single_prompt_only
    # A reserved step is padded, and what it is padded to changes its rounding: batch-invariant
    # decoding reserves nothing.
    capacity = _capacity(prompts, prefix_length, sampling, batch_size)
    decoder.reserve(None if one_at_a_time else capacity)
    decoder.prefill_prefix(prompts[0].token_ids[:prefix_length])

    waiting = list(indices)
    step_logits: list[Tensor] = []  # of the rows in the batch, then of the entering ones
    while waiting or batch.num_samples:
        room = (batch_size - batch.num_samples) // num_samples
        if one_at_a_time:
            room = 0 if batch.num_samples else 1
        if entering := waiting[: min(room, MAX_PREFILL_PROMPTS)]:
            del waiting[: len(entering)]
            suffixes = [prompts[index].token_ids[prefix_length:] for index in entering]
            step_logits.append(decoder.prefill_prompts(suffixes))
            batch.add(entering, [prompts[index].question_id for index in entering], num_samples)

        logits = step_logits[0] if len(step_logits) == 1 else torch.cat(step_logits)
        if edit is not None:
            logits = _edited(edit, logits, batch.rows())
        sort_rows = decoder.prefers_sorted_rows
        rows = _draw_and_append(batch, logits, sampling, prompts, sort_rows=sort_rows)
        yield from batch.finished()
        if rows.tolist() != list(range(len(logits))):  # a decoder may copy its whole cache
            decoder.reorder(rows)
        step_logits.clear()
        if batch.num_samples:
            step_logits.append(decoder.step(batch.last_tokens(decoder.device)))


def _capacity(
    prompts: list[Prompt], prefix_length: int, sampling: SamplingParams, batch_size: int
) -> Capacity:
    most_prompts = MAX_PROMPTS_FACTOR * batch_size // sampling.num_samples
    return Capacity(
        max_rows=batch_size,
        samples_per_prompt=sampling.num_samples,
        max_new_tokens=sampling.max_new_tokens,
        max_prompts=max(1, min(batch_size, most_prompts)),
        max_prompt_len=max(len(prompt.token_ids) for prompt in prompts) - prefix_length,
    )


def _edited(edit: Edit, logits: Tensor, rows: Rows) -> Tensor:
    """Logits (R, V) as a strategy changes them.

    Raises:
        InputError: it returns something else.
    """
    edited = edit(logits, rows)
    shown = type(edited).__name__
    if isinstance(edited, Tensor):
        is_in_place = edited.shape == logits.shape and edited.device == logits.device
        if is_in_place and edited.is_floating_point():
            return edited
        shown = f"{tuple(edited.shape)} of {edited.dtype} on {edited.device}"
    raise InputError(
        f"strategies: edit_logits must return logits {tuple(logits.shape)} on {logits.device}, not "
        f"{shown}"
    )


def _draw_and_append(
    batch: Batch,
    logits: Tensor,
    sampling: SamplingParams,
    prompts: list[Prompt],
    *,
    sort_rows: bool,
) -> IntArray:
    """Draw a token per sample from logits (R, V); returns the rows to continue with (R',).

    Raises:
        InputError: logits that are NaN.
    """
    uniform, row = (to_device(values, logits.device) for values in batch.draws())
    entropies = None
    if sampling.temperature == 0:
        drawn = most_likely(logits)[row]
        entropies = entropy(logits)[row].cpu().numpy()
    else:
        drawn = draw(logits, uniform, sampling.temperature, sampling.top_p, row)
    tokens = drawn.cpu().numpy()  # the only time that a step waits for the device
    if (tokens == NOT_A_NUMBER).any():
        index, step = batch.prompt_and_step(int((tokens == NOT_A_NUMBER).argmax()))
        raise InputError(
            f"question {prompts[index].question_id}: the model's logits are NaN at step {step}; "
            "check that the model is loaded in the dtype it was trained in"
        )
    return batch.append(tokens, entropies, sort_rows=sort_rows)
