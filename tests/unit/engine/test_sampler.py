import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.tiny_models import FAMILIES, VOCABULARY, model, tokenizer
from zerogap.engine import drawing
from zerogap.engine.decoder import Prompt, SamplingParams
from zerogap.engine.drawing import draw
from zerogap.engine.randomness import uniforms
from zerogap.engine.sampler import greedy, sample, shared_prefix_length
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
from zerogap.errors import InputError

TOKENIZER = tokenizer()
TEXTS = ["Q: one\nA:", "Q: twenty-two of them\nA:", "Q: 3\nA:", "Q: four, at last\nA:"]
PROMPTS = [
    Prompt(f"q{i}", TOKENIZER("Shots first. " + text)["input_ids"]) for i, text in enumerate(TEXTS)
]
SAMPLING = SamplingParams(temperature=0.7, max_new_tokens=24, stop=["Q:"], num_samples=6, seed=3)


def everything(family, sampling, prompts=PROMPTS):
    drawn = sample(SharedPromptDecoder(model(family)), prompts, TOKENIZER, sampling)
    return {prompts[index].question_id: responses for index, responses in drawn}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_sample_depends_on_nothing_but_seed_question_and_index(family):
    whole = everything(family, SAMPLING)
    assert len({tuple(r.token_ids) for rs in whole.values() for r in rs}) > 12
    small = everything(family, dataclasses.replace(SAMPLING, batch_size=7))
    backwards = everything(family, SAMPLING, PROMPTS[::-1])
    assert whole == small == backwards
    fewer = everything(family, dataclasses.replace(SAMPLING, num_samples=2))
    assert fewer == {name: responses[:2] for name, responses in whole.items()}


def literal_sample(reference, prompt, which, sampling):
    """One sample by itself, from the whole sequence at every step, with the documented draws."""
    numbers = uniforms(sampling.seed, sampling.stream, prompt.question_id, range(which + 1), 24)[
        which
    ]
    tokens = []
    for uniform in numbers:
        with torch.no_grad():
            logits = reference(torch.tensor([prompt.token_ids + tokens])).logits[0, -1]
        running = (logits / sampling.temperature).softmax(-1).cumsum(-1)
        tokens.append(int((running <= uniform * running[-1]).sum()))
        if tokens[-1] == TOKENIZER.eos_token_id or "Q:" in TOKENIZER.decode(tokens):
            break
    return tokens


@pytest.mark.parametrize("family", FAMILIES)
def test_samples_are_those_of_a_literal_sampler(family):
    """Though rows are shared, split, moved and dropped: token by token the same."""
    reference = model(family)
    for name, responses in everything(family, SAMPLING).items():
        prompt = next(one for one in PROMPTS if one.question_id == name)
        expected = [literal_sample(reference, prompt, j, SAMPLING) for j in range(6)]
        assert [response.token_ids for response in responses] == expected


def test_samples_that_agree_so_far_are_one_row():
    """Fifty samples of a peaked model need few rows; what they draw is as if they had one each."""
    decoder = SharedPromptDecoder(model("llama"))
    rows = []
    step = decoder.step
    decoder.step = lambda tokens: rows.append(len(tokens)) or step(tokens)
    cold = dataclasses.replace(SAMPLING, temperature=0.01, num_samples=50)
    drawn = dict(sample(decoder, PROMPTS[:1], TOKENIZER, cold))
    distinct = {
        tuple(r.token_ids[: length + 1]) for r in drawn[0] for length in range(len(r.token_ids) - 1)
    }
    assert sum(rows) == len(distinct) < 0.5 * sum(len(r.token_ids) for r in drawn[0])


@pytest.mark.parametrize("family", FAMILIES)
def test_exact_mode_decodes_each_question_by_itself(family):
    """The very same matrix shapes, hence the very same bits, whatever else is to be sampled."""
    exact = dataclasses.replace(SAMPLING, batch_invariant=True)
    shapes = {}

    def recorded(prompts, chosen):
        decoder = SharedPromptDecoder(model(family))
        step, seen = decoder.step, []
        decoder.step = lambda tokens: seen.append(tokens.tolist()) or step(tokens)
        for index, _ in sample(decoder, prompts, TOKENIZER, exact, indices=chosen):
            shapes.setdefault(prompts[index].question_id, []).append(list(seen))
            seen.clear()

    recorded(PROMPTS, None)
    recorded(PROMPTS[::-1], [2, 0])
    for alone in shapes.values():
        assert all(one == alone[0] for one in alone)
    assert sorted(map(len, shapes.values())) == [1, 1, 2, 2]


def test_shards_draw_what_the_whole_draws():
    whole = everything("llama", SAMPLING)
    for count in (1, 2, 7):
        parts = {}
        for shard in range(count):
            chosen = range(shard, len(PROMPTS), count)
            drawn = sample(
                SharedPromptDecoder(model("llama")), PROMPTS, TOKENIZER, SAMPLING, indices=chosen
            )
            parts |= {PROMPTS[index].question_id: responses for index, responses in drawn}
        assert parts == whole


def test_seed_and_stream_change_the_draws():
    whole = everything("llama", SAMPLING)
    assert whole != everything("llama", dataclasses.replace(SAMPLING, seed=4))
    assert whole != everything("llama", dataclasses.replace(SAMPLING, stream="clean-batch1"))


@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_is_that_of_generate(family):
    sampling = SamplingParams(temperature=0, max_new_tokens=16, stop=[], batch_size=2)
    ours = greedy(SharedPromptDecoder(model(family)), PROMPTS, TOKENIZER, sampling)
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


def test_greedy_rows_that_change_places_stay_with_their_questions():
    """Questions that end at different steps, so that rows move into the gaps."""
    many = [Prompt(str(i), TOKENIZER(f"Shots. Q: {i * 7919}\nA:")["input_ids"]) for i in range(24)]
    sampling = SamplingParams(temperature=0, max_new_tokens=16, stop=[], batch_size=1)
    whole = greedy(SharedPromptDecoder(model("llama")), many, TOKENIZER, sampling)
    ends = [{t: one.token_ids.index(t) for t in one.token_ids} for one in whole]
    # The token that ends most responses, at different steps.
    end = max(range(VOCABULARY), key=lambda t: len({places.get(t, 0) for places in ends}))
    words = tokenizer()
    words.eos_token = TOKENIZER.convert_ids_to_tokens(end)
    assert words.eos_token_id == end
    together = greedy(
        SharedPromptDecoder(model("llama")),
        many,
        words,
        dataclasses.replace(sampling, batch_size=10),
    )
    assert len({len(one.token_ids) for one in together}) > 3
    for one, alone, places in zip(together, whole, ends, strict=True):
        length = places.get(end, 15) + 1
        assert one.token_ids == alone.token_ids[:length]
        assert one.entropy == pytest.approx(alone.entropy[:length])


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
    assert shared_prefix_length(prompts) == 2
    assert shared_prefix_length([Prompt("a", [1, 2, 3])]) == 2


def test_prompts_need_no_common_beginning():
    apart = [Prompt("a", [1, 2]), Prompt("b", [2, 2, 3])]
    sampling = SamplingParams(temperature=0, max_new_tokens=6, stop=[])
    together = greedy(SharedPromptDecoder(model("llama")), apart, TOKENIZER, sampling)
    alone = [
        greedy(SharedPromptDecoder(model("llama")), [one], TOKENIZER, sampling)[0] for one in apart
    ]
    assert [one.token_ids for one in together] == [one.token_ids for one in alone]


def test_logits_that_are_no_numbers_name_the_question():
    broken = model("llama")
    with torch.no_grad():
        broken.lm_head.weight.fill_(float("nan"))
    with pytest.raises(InputError, match=r"question q[0-3]: .*logits are NaN at step 0"):
        list(sample(SharedPromptDecoder(broken), PROMPTS, TOKENIZER, SAMPLING))


def test_logits_that_cease_to_be_numbers_name_the_step():
    decoder = SharedPromptDecoder(model("llama"))
    step, taken = decoder.step, []

    def breaks(tokens):
        taken.append(tokens)
        return step(tokens) * (float("nan") if len(taken) == 3 else 1)

    decoder.step = breaks
    unending = dataclasses.replace(SAMPLING, stop=[])
    with pytest.raises(InputError, match=r"question q1: .*logits are NaN at step 3; check"):
        list(sample(decoder, PROMPTS[1:2], TOKENIZER, unending))


BOTH_DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])


@BOTH_DTYPES
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-8, 8), min_size=2, max_size=200),
    st.floats(0, 1, exclude_max=True),
    st.integers(0, 5),
)
def test_draw_inverts_the_distribution_function(dtype, logits, uniform, banned):
    row = torch.tensor([logits], dtype=dtype)
    row[0, : min(banned, len(logits) - 1)] = float("-inf")
    token = int(draw(row, torch.tensor([uniform], dtype=torch.float64), 0.7))
    probabilities = (row.double() / 0.7).softmax(-1)[0]
    assert probabilities[token] > 0
    below = probabilities[:token].sum()
    assert below - 1e-5 <= uniform <= below + probabilities[token] + 1e-5


@BOTH_DTYPES
def test_draws_follow_the_distribution(dtype):
    """Chi-square of 40,000 draws against softmax, over a vocabulary of several blocks."""
    torch.manual_seed(0)
    logits = (torch.randn(1, 150) * 2).to(dtype)
    uniform = torch.from_numpy(uniforms(1, "s", "q", range(1), 40_000)[0])
    drawn = draw(logits, uniform, 0.7, row=torch.zeros(40_000, dtype=torch.long))
    expected = (logits[0].double() / 0.7).softmax(-1) * 40_000
    observed = torch.bincount(drawn, minlength=150).double()
    likely = expected > 5
    statistic = ((observed - expected) ** 2 / expected)[likely].sum()
    freedom = int(likely.sum()) - 1
    assert abs(statistic - freedom) < 4 * (2 * freedom) ** 0.5
    assert observed[~likely].sum() < 2 * expected[~likely].sum() + 20


@BOTH_DTYPES
def test_draws_of_many_samples_from_shared_rows_are_those_of_a_row_each(dtype):
    logits = torch.randn(5, 130).to(dtype)
    row = torch.tensor([4, 0, 0, 3, 4, 1, 1, 1])
    uniform = torch.rand(8, dtype=torch.float64)
    assert draw(logits, uniform, 0.7, row=row).equal(draw(logits[row], uniform, 0.7))


@pytest.mark.parametrize("top_p", [1.0, 0.7])
def test_draws_a_few_rows_at_a_time_are_those_of_all_at_once(top_p, monkeypatch):
    logits = torch.randn(7, 130)
    logits[2] = float("nan")
    row = torch.tensor([6, 0, 0, 3, 6, 1, 1, 1, 2])  # none draws from 4 and 5
    uniform = torch.rand(9, dtype=torch.float64)
    whole = draw(logits, uniform, 0.7, top_p, row)
    for rows in (1, 2, 3, 4):
        monkeypatch.setattr(drawing, "CPU_LOGITS_CHUNK", rows * 130)
        assert draw(logits, uniform, 0.7, top_p, row).equal(whole)
    assert whole[8] == -1


def test_top_p_keeps_the_smallest_head_that_reaches_p():
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log()
    for uniform in torch.linspace(0, 0.999, 50):
        assert draw(logits, uniform[None].double(), 1.0, top_p=0.7) in (0, 1)
