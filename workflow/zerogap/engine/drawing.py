"""Drawing tokens from logits, with uniform numbers that belong to a sample and not to a run.

The uniform of sample j of question q at step t is a function of (seed, stream, q, j, t) alone. A
counter-based generator (Philox) is keyed by seed, stream and question, and its counter starts at
the sample. Batch size, order, sharding and strategy change no draw, and all strategies of a stream
use the same numbers, which makes their comparison paired.
"""

import hashlib

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from zerogap.engine import kernels

NOT_A_NUMBER = -1  # "token" that is drawn from logits that are NaN
TOKEN_BLOCK = 64  # tokens whose probabilities are summed before the running sum is taken
CPU_LOGITS_CHUNK = 1 << 18  # logits turned into probabilities at once on a CPU: one megabyte


def uniforms(
    seed: int, stream: str, question_id: str, samples: range, n_steps: int
) -> NDArray[np.float64]:
    """Uniforms in [0, 1) of a question's sample ids, shape (len(samples), n_steps).

    The streams of a seed are independent: the two batches of the clean model and the strategies
    have one each.
    """
    digest = hashlib.blake2b(f"{seed}/{stream}/{question_id}".encode(), digest_size=16).digest()
    key = np.frombuffer(digest, dtype="<u8")
    philox = (np.random.Philox(key=key, counter=[0, sample, 0, 0]) for sample in samples)
    return np.stack([np.random.Generator(bits).random(n_steps) for bits in philox])


def draw(logits: Tensor, uniform: Tensor, temperature: float, top_p: float, row: Tensor) -> Tensor:
    """Draw tokens (N,) by inverse CDF from softmax(logits (R, V) / temperature).

    Args:
        logits: (R, V).
        uniform: (N,) uniforms in [0, 1), one per token to draw.
        temperature: divides the logits; positive.
        top_p: draw from the smallest set of most likely tokens that reaches this probability.
        row: (N,) the row of logits that each uniform draws from.

    Returns:
        The tokens; :data:`NOT_A_NUMBER` where a row's logits are NaN.
    """
    on_cpu = logits.device.type == "cpu"
    if top_p == 1 and kernels.draws(logits):
        from zerogap.engine.kernels import cpu_rows  # loads numba, which takes seconds

        return cpu_rows.draw(logits, uniform, temperature, row)
    # A CPU takes a few rows at a time, so that their probabilities stay in the processor's cache:
    # it waits for memory otherwise.
    chunk = max(1, CPU_LOGITS_CHUNK // logits.shape[1]) if on_cpu else len(logits)
    if chunk >= len(logits):
        return _inverse_cdf(_probabilities(logits, temperature, top_p), uniform, row)
    tokens = torch.empty_like(row)
    for number, chunk_logits in enumerate(torch.split(logits, chunk)):
        draws = row // chunk == number
        probabilities = _probabilities(chunk_logits, temperature, top_p)
        tokens[draws] = _inverse_cdf(probabilities, uniform[draws], row[draws] % chunk)
    return tokens


def most_likely(logits: Tensor) -> Tensor:
    """The most likely token (R,) per row; :data:`NOT_A_NUMBER` where logits (R, V) are NaN."""
    return logits.argmax(-1).masked_fill_(logits.sum(-1).isnan(), NOT_A_NUMBER)


def entropy(logits: Tensor) -> Tensor:
    """Entropy (R,) in nats of softmax(logits (R, V))."""
    log_probabilities = logits.float().log_softmax(-1)
    return -(log_probabilities.exp() * log_probabilities.nan_to_num(neginf=0.0)).sum(-1)


def _probabilities(logits: Tensor, temperature: float, top_p: float) -> Tensor:
    """softmax(logits (R, V) / temperature) in float32; 0 for tokens outside the nucleus."""
    probabilities = (logits.float() / temperature).softmax(-1)
    if top_p < 1:
        ordered, order = probabilities.sort(dim=-1, descending=True)
        outside = ordered.cumsum(-1) - ordered >= top_p
        ordered = ordered.masked_fill(outside, 0)
        probabilities = torch.zeros_like(probabilities).scatter_(1, order, ordered)
    return probabilities


def _inverse_cdf(probabilities: Tensor, uniform: Tensor, row: Tensor) -> Tensor:
    """The token (N,) at which the running sum of a row of (R, V) exceeds uniform × its total.

    The search has two levels: first the block of tokens, then the token in that block. Running
    sums over the whole vocabulary would cost more than all other work of drawing. They are taken
    in float64, since a float32 sum over 32,000 tokens is off by more than rare tokens weigh. A
    token of probability 0 is never returned.
    """
    num_rows, vocabulary = probabilities.shape
    if vocabulary % TOKEN_BLOCK:
        probabilities = nn.functional.pad(probabilities, (0, -vocabulary % TOKEN_BLOCK))
    blocks = probabilities.view(num_rows, -1, TOKEN_BLOCK)
    block_sums = blocks.sum(-1).cumsum(-1, dtype=torch.float64)[row]
    threshold = uniform[:, None] * block_sums[:, -1:]
    block = torch.searchsorted(block_sums, threshold, right=True)
    block = block.clamp(max=block_sums.shape[1] - 1)
    before = block_sums.gather(1, (block - 1).clamp(min=0)).masked_fill(block == 0, 0.0)
    candidates = blocks[row, block[:, 0]]
    running = candidates.cumsum(-1, dtype=torch.float64)
    # A block's sum and its running sum may round differently: never pass its last likely token.
    positions = torch.arange(1, TOKEN_BLOCK + 1, device=candidates.device)
    last = ((candidates > 0) * positions).amax(-1) - 1
    offset = torch.searchsorted(running, threshold - before, right=True)[:, 0]
    token = block[:, 0] * TOKEN_BLOCK + torch.minimum(offset, last)
    return token.masked_fill(block_sums[:, -1].isnan(), NOT_A_NUMBER)
