import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import FAMILIES, model, tokenizer

from zerogap.decoding.cache import CachedModel
from zerogap.decoding.sampler import Prompt, Sampling, draw, greedy, sample, shared_prefix
from zerogap.errors import InputError

TOKENIZER = tokenizer()
TEXTS = ["Q: one\nA:", "Q: twenty-two of them\nA:", "Q: 3\nA:", "Q: four, at last\nA:"]
PROMPTS = [
    Prompt(f"q{i}", TOKENIZER("Shots first. " + text)["input_ids"]) for i, text in enumerate(TEXTS)
]
SAMPLING = Sampling(temperature=0.7, max_new_tokens=24, stop=["Q:"], samples=6, seed=3)


def everything(family, sampling, prompts=PROMPTS):
    drawn = sample(CachedModel(model(family)), prompts, TOKENIZER, sampling)
    return {prompts[index].question_id: responses for index, responses in drawn}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_sample_depends_on_nothing_but_seed_question_and_index(family):
    whole = everything(family, SAMPLING)
    assert len({tuple(r.token_ids) for rs in whole.values() for r in rs}) > 12
    small = everything(family, dataclasses.replace(SAMPLING, batch_rows=7))
    backwards = everything(family, SAMPLING, PROMPTS[::-1])
    assert whole == small == backwards
    fewer = everything(family, dataclasses.replace(SAMPLING, samples=2))
    assert fewer == {name: responses[:2] for name, responses in whole.items()}


def test_seed_and_stream_change_the_draws():
    whole = everything("llama", SAMPLING)
    assert whole != everything("llama", dataclasses.replace(SAMPLING, seed=4))
    assert whole != everything("llama", dataclasses.replace(SAMPLING, stream="clean-batch1"))


@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_is_that_of_generate(family):
    sampling = Sampling(temperature=0, max_new_tokens=16, stop=[], batch_rows=2)
    ours = greedy(CachedModel(model(family)), PROMPTS, TOKENIZER, sampling)
    reference = model(family)
    for prompt, response in zip(PROMPTS, ours, strict=True):
        ids = torch.tensor([prompt.token_ids])
        with torch.no_grad():
            whole = reference.generate(
                ids,
                do_sample=False,
                max_new_tokens=16,
                eos_token_id=TOKENIZER.eos_token_id,
                pad_token_id=0,
            )
            generated = whole[0, ids.shape[1] :]
            logs = reference(whole).logits[0, ids.shape[1] - 1 : -1].log_softmax(-1)
        assert response.token_ids == generated.tolist()
        entropy = -(logs.exp() * logs).sum(-1)
        torch.testing.assert_close(torch.tensor(response.entropy), entropy.float())


def test_responses_end_where_they_should():
    for response in everything("llama", SAMPLING)["q0"]:
        text = TOKENIZER.decode(response.token_ids)
        if response.finish_reason == "eos":
            assert response.token_ids[-1] == TOKENIZER.eos_token_id
        elif response.finish_reason == "stop":
            assert text.endswith("Q:") or "Q:" in TOKENIZER.decode(response.token_ids[-2:])
        else:
            assert len(response.token_ids) == SAMPLING.max_new_tokens
        assert TOKENIZER.eos_token_id not in response.token_ids[:-1]


def test_the_prefix_leaves_every_prompt_a_token():
    prompts = [Prompt("a", [1, 2, 3]), Prompt("b", [1, 2, 3, 4])]
    assert shared_prefix(prompts) == 2
    assert shared_prefix([Prompt("a", [1, 2, 3])]) == 2


def test_prompts_without_a_common_beginning_are_refused():
    with pytest.raises(InputError, match="few-shot prefix"):
        greedy(
            CachedModel(model("llama")),
            [Prompt("a", [1, 2]), Prompt("b", [2, 2])],
            TOKENIZER,
            Sampling(temperature=0, max_new_tokens=2, stop=[]),
        )


def test_logits_that_are_no_numbers_name_the_question():
    broken = model("llama")
    with torch.no_grad():
        broken.lm_head.weight.fill_(float("nan"))
    with pytest.raises(InputError, match="q[0-3]"):
        list(sample(CachedModel(broken), PROMPTS, TOKENIZER, SAMPLING))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-8, 8), min_size=2, max_size=200),
    st.floats(0, 1, exclude_max=True),
    st.integers(0, 5),
)
def test_draw_inverts_the_distribution_function(logits, uniform, banned):
    row = torch.tensor([logits])
    row[0, : min(banned, len(logits) - 1)] = float("-inf")
    token = int(draw(row, torch.tensor([uniform], dtype=torch.float64), 0.7))
    probabilities = (row.double() / 0.7).softmax(-1)[0]
    assert probabilities[token] > 0
    below = probabilities[:token].sum()
    assert below - 1e-5 <= uniform <= below + probabilities[token] + 1e-5


def test_top_p_keeps_the_smallest_head_that_reaches_p():
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log()
    for uniform in torch.linspace(0, 0.999, 50):
        assert draw(logits, uniform[None].double(), 1.0, top_p=0.7) in (0, 1)
