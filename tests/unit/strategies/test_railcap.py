import math

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from transformers import LogitsProcessorList

from helpers.decoding import rows_of
from helpers.tiny_models import model, tokenizer
from zerogap.engine.decoder import Prompt, SamplingParams
from zerogap.engine.drawing import draw, uniforms
from zerogap.engine.sampler import greedy, sample
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
from zerogap.strategies.base import Context
from zerogap.strategies.logits_processor import RailCapLogitsProcessor
from zerogap.strategies.railcap import RailCap

VOCABULARY = 5


def algorithm_1(trajectory, generated, logits, n, suppression, successor):
    """Lines 2 and 6-9 of the paper's Algorithm 1 for one row, literally (indices from 1).

    What the paper leaves open: the first successor, and a runner-up of −inf.
    """
    g = [None, *trajectory]
    T = len(trajectory)  # noqa: N806 (the paper's name)
    H = {}  # noqa: N806
    for k in range(1, T - n + 1):
        if successor == "last" or tuple(g[k : k + n]) not in H:
            H[tuple(g[k : k + n])] = g[k + n]
    o = [None, *generated]
    t = len(generated) + 1
    logits = list(logits)
    if t > n and tuple(o[t - n : t]) in H:
        x = H[tuple(o[t - n : t])]
        if all(logits[other] == -math.inf for other in range(VOCABULARY) if other != x):
            return logits
        if suppression == "cap":
            logits[x] = min(logits[x], sorted(logits)[-2])
        else:
            logits[x] = float("-inf")
    return logits


def edit_of(railcap, trajectories):
    return railcap.prepare(Context(trajectories, [])).edit_logits


tokens = st.lists(st.integers(0, VOCABULARY - 1), max_size=12)
level = st.one_of(st.integers(-2, 2).map(float), st.just(float("-inf")))  # many ties


@pytest.mark.filterwarnings("error")  # a strategy does not wait for the device to give one
@settings(max_examples=400, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            tokens.filter(bool), tokens, st.lists(level, min_size=VOCABULARY, max_size=VOCABULARY)
        ),
        min_size=1,
        max_size=4,
    ),
    n=st.integers(1, 5),
    suppression=st.sampled_from(["cap", "ban"]),
    successor=st.sampled_from(["last", "first"]),
)
@example([([1, 1, 2], [1], [0.0, 0.0, 1.0, 0.0, 0.0])], 2, "cap", "last")  # not n tokens yet
def test_railcap_edits_a_batch_as_algorithm_1_edits_each_row(rows, n, suppression, successor):
    trajectories, generated, logits = zip(*rows, strict=True)
    edit_logits = edit_of(RailCap(n, suppression, successor), list(trajectories))
    edited = edit_logits(torch.tensor(logits), rows_of(generated))
    expected = [algorithm_1(*row, n, suppression, successor) for row in rows]
    assert edited.tolist() == expected


@pytest.mark.parametrize("suppression", ["cap", "ban"])
def test_a_token_keeps_its_logit_if_another_processor_has_masked_all_others(suppression):
    """As in guided decoding. Without any token left, sampling would fail."""
    processor = RailCapLogitsProcessor([[1, 2, 4]] * 2, 0, n=2, suppression=suppression)
    scores = torch.full((2, VOCABULARY), -math.inf)
    scores[:, 4], scores[1, 0] = 9, 1
    with pytest.warns(UserWarning, match=r"^RailCap: every token but the rail token is masked"):
        suppressed = processor(torch.tensor([[1, 2], [1, 2]]), scores)
    assert torch.equal(suppressed[0], scores[0])
    assert suppressed[1, 4] == (1 if suppression == "cap" else -math.inf)


def test_generate_with_the_processor_samples_what_the_engine_samples(monkeypatch):
    """A left-padded batch with several sequences per prompt, given the engine's random draws."""
    words = tokenizer()
    texts = ["Shots. Q: one?\nA:", "Shots. Q: twenty-two of them?\nA:"]
    prompts = [Prompt(str(i), words(text)["input_ids"]) for i, text in enumerate(texts)]
    sampling = SamplingParams(temperature=0.5, max_new_tokens=14, stop=[], num_samples=3, seed=8)
    plain = SamplingParams(temperature=0, max_new_tokens=14, stop=[])
    decoder = SharedPromptDecoder(model("llama"))
    greedy_responses = greedy(decoder, prompts, words, plain)
    trajectories = [response.token_ids for response in greedy_responses]
    edit_logits = edit_of(RailCap(n=1), trajectories)
    engine = dict(sample(decoder, prompts, words, sampling, edit_logits))

    numbers = np.concatenate([uniforms(8, "strategies", name, range(3), 14) for name in "01"])
    steps = iter(range(14))

    def engines_draw(probabilities, num_samples):
        uniform = torch.from_numpy(numbers[:, next(steps)])
        rows = torch.arange(len(uniform))
        return draw(probabilities.log(), uniform, 1.0, 1.0, rows)[:, None]

    monkeypatch.setattr(torch, "multinomial", engines_draw)
    words.pad_token = words.eos_token
    batch = words(texts, padding=True, padding_side="left", return_tensors="pt")
    longest = batch.input_ids.shape[1]
    out = model("llama").generate(
        **batch,
        do_sample=True,
        temperature=0.5,
        top_k=0,
        num_return_sequences=3,
        max_new_tokens=14,
        eos_token_id=words.eos_token_id,
        pad_token_id=words.eos_token_id,
        logits_processor=LogitsProcessorList([RailCapLogitsProcessor(trajectories, longest, n=1)]),
    )[:, longest:]
    for row, tokens in enumerate(out.tolist()):
        expected = engine[row // 3][row % 3].token_ids
        assert tokens[: len(expected)] == expected


def test_a_batch_that_does_not_match_the_trajectories_is_an_error():
    processor = RailCapLogitsProcessor([[1, 2], [3, 4]], prompt_length=1)
    with pytest.raises(ValueError, match="2 trajectories for a batch of 3 rows"):
        processor(torch.ones(3, 4, dtype=torch.long), torch.randn(3, 5))
