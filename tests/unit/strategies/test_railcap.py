import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import LogitsProcessorList

from helpers.tiny_models import model, tokenizer
from zerogap.engine.decoder import Prompt, Rows, SamplingParams
from zerogap.engine.drawing import draw
from zerogap.engine.randomness import uniforms
from zerogap.engine.sampler import greedy, sample
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
from zerogap.strategies.base import Context
from zerogap.strategies.railcap import RailCap, RailCapLogitsProcessor

VOCABULARY = 5


def algorithm_1(trajectory, generated, logits, n, suppression):
    """The paper's Algorithm 1, lines 2 and 6-9, word for word, for one row (indices from 1)."""
    g = [None, *trajectory]
    T = len(trajectory)
    H = {}
    for k in range(1, T - n + 1):
        H[tuple(g[k : k + n])] = g[k + n]
    o = [None, *generated]
    t = len(generated) + 1
    logits = list(logits)
    if t > n and tuple(o[t - n : t]) in H:
        x = H[tuple(o[t - n : t])]
        if suppression == "cap":
            logits[x] = min(logits[x], sorted(logits)[-2])
        else:
            logits[x] = float("-inf")
    return logits


tokens = st.lists(st.integers(0, VOCABULARY - 1), max_size=12)
level = st.one_of(st.integers(-2, 2).map(float), st.just(float("-inf")))  # many ties


@settings(max_examples=400, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            tokens.filter(bool),
            tokens,
            st.lists(level, min_size=VOCABULARY, max_size=VOCABULARY),
        ),
        min_size=1,
        max_size=4,
    ),
    n=st.integers(1, 5),
    suppression=st.sampled_from(["cap", "ban"]),
)
def test_a_batch_agrees_with_algorithm_1_row_by_row(rows, n, suppression):
    trajectories, generated, logits = zip(*rows, strict=True)
    edit = RailCap(n=n, suppression=suppression).prepare(Context(list(trajectories), [])).edit
    width = max(map(len, generated))
    padded = torch.tensor([[*own, *[-1] * (width - len(own))] for own in generated]).long()
    batch = Rows(
        question=torch.arange(len(rows)),
        step=torch.tensor([len(own) for own in generated]),
        tokens=padded.view(len(rows), width),
    )
    ours = edit(torch.tensor(logits), batch)
    expected = [algorithm_1(*row, n, suppression) for row in rows]
    assert ours.tolist() == expected


def test_the_end_token_is_capped_on_the_rail():
    edit = RailCap(n=2).prepare(Context([[1, 2, 4]], [])).edit
    rows = Rows(torch.tensor([0]), torch.tensor([2]), torch.tensor([[1, 2, -1]]))
    assert edit(torch.tensor([[0.0, 1.0, 2.0, 3.0, 9.0]]), rows).tolist() == [[0, 1, 2, 3, 3]]


@pytest.mark.parametrize("bad", [{"n": 0}, {"suppression": "halve"}])
def test_senseless_parameters_are_refused(bad):
    with pytest.raises(ValueError, match="RailCap"):
        RailCap(**bad).prepare(Context([[1]], []))


def test_the_logits_processor_acts_in_generate_as_the_strategy_does():
    """With a ban, generating greedily from the rail can never follow the trajectory for n+1."""
    net, words = model("llama").float(), tokenizer()
    ids = torch.tensor([words("Q: how many?\nA:")["input_ids"]])
    options = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 0, "eos_token_id": 299}
    trajectory = net.generate(ids, **options)[0, ids.shape[1] :].tolist()
    processor = RailCapLogitsProcessor([trajectory], ids.shape[1], n=3, suppression="ban")
    changed = net.generate(ids, logits_processor=LogitsProcessorList([processor]), **options)
    generated = changed[0, ids.shape[1] :].tolist()
    assert generated[:3] == trajectory[:3]
    assert generated[3] != trajectory[3]

    edit = RailCap(n=3).prepare(Context([trajectory], [])).edit
    scores = torch.randn(1, 300)
    scores[0, trajectory[3]] = 50.0
    rows = Rows(torch.tensor([0]), torch.tensor([3]), torch.tensor([trajectory[:3]]))
    capped = RailCapLogitsProcessor([trajectory], ids.shape[1], n=3)(
        torch.cat([ids, torch.tensor([trajectory[:3]])], dim=1), scores
    )
    assert torch.equal(capped, edit(scores, rows))
    assert capped.max() < 50


def test_processor_acts_before_the_temperature():
    """`generate` divides by the temperature after it: the runner-up's level is a raw logit."""
    net, words = model("llama").float(), tokenizer()
    ids = torch.tensor([words("Q: how many?\nA:")["input_ids"]])
    seen = []

    class Spy(RailCapLogitsProcessor):
        def __call__(self, input_ids, scores):
            seen.append(scores.clone())
            return super().__call__(input_ids, scores)

    spy = LogitsProcessorList([Spy([[1, 2]], ids.shape[1], n=1)])
    net.generate(
        ids, logits_processor=spy, do_sample=True, temperature=0.7, max_new_tokens=1, pad_token_id=0
    )
    with torch.no_grad():
        torch.testing.assert_close(seen[0], net(ids).logits[:, -1])


def test_in_generate_it_samples_what_the_engine_samples(monkeypatch):
    """A left-padded batch with several sequences a prompt, given the engine's draws: the same."""
    words = tokenizer()
    texts = ["Shots. Q: one?\nA:", "Shots. Q: twenty-two of them?\nA:"]
    prompts = [Prompt(str(i), words(text)["input_ids"]) for i, text in enumerate(texts)]
    sampling = SamplingParams(temperature=0.5, max_new_tokens=14, stop=[], num_samples=3, seed=8)
    plain = SamplingParams(temperature=0, max_new_tokens=14, stop=[])
    decoder = SharedPromptDecoder(model("llama"))
    greedy_responses = greedy(decoder, prompts, words, plain)
    trajectories = [one.token_ids for one in greedy_responses]
    edit = RailCap(n=1).prepare(Context(trajectories, [])).edit
    engine = dict(sample(decoder, prompts, words, sampling, edit))

    numbers = np.concatenate([uniforms(8, "strategies", name, range(3), 14) for name in "01"])
    steps = iter(range(14))

    def engines_draw(probabilities, num_samples):
        uniform = torch.from_numpy(numbers[:, next(steps)])
        return draw(probabilities.log(), uniform, 1.0)[:, None]

    monkeypatch.setattr(torch, "multinomial", engines_draw)
    longest = max(len(prompt.token_ids) for prompt in prompts)
    ids = torch.tensor([[0] * (longest - len(p.token_ids)) + p.token_ids for p in prompts])
    mask = torch.tensor(
        [[0] * (longest - len(p.token_ids)) + [1] * len(p.token_ids) for p in prompts]
    )
    out = model("llama").generate(
        ids,
        attention_mask=mask,
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


def test_a_batch_that_does_not_fit_the_trajectories_is_refused():
    processor = RailCapLogitsProcessor([[1, 2], [3, 4]], prompt_length=1)
    with pytest.raises(ValueError, match="2 trajectories for a batch of 3 rows"):
        processor(torch.ones(3, 4, dtype=torch.long), torch.randn(3, 5))
