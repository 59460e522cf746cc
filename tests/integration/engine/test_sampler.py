import dataclasses
import re

import pytest
import torch

from helpers.tiny_models import FAMILIES, VOCABULARY, model, tokenizer
from zerogap.engine.decoder import Prompt, SamplingParams
from zerogap.engine.drawing import uniforms
from zerogap.engine.sampler import greedy, sample, shared_prefix_length
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
from zerogap.errors import InputError

TOKENIZER = tokenizer()
TEXTS = ["Q: one\nA:", "Q: twenty-two of them\nA:", "Q: 3\nA:", "Q: four, at last\nA:"]
PROMPTS = [
    Prompt(f"q{i}", TOKENIZER("Shots first. " + text)["input_ids"]) for i, text in enumerate(TEXTS)
]
SAMPLING = SamplingParams(
    temperature=0.7, max_new_tokens=24, stop=["Q:"], num_samples=6, seed=3, stream="clean"
)


def everything(family, sampling, prompts=PROMPTS):
    drawn = sample(SharedPromptDecoder(model(family)), prompts, TOKENIZER, sampling)
    return {prompts[index].question_id: responses for index, responses in drawn}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_sample_depends_only_on_seed_question_and_sample_id(family):
    whole = everything(family, SAMPLING)
    assert len({tuple(r.token_ids) for rs in whole.values() for r in rs}) > 12
    small = everything(family, dataclasses.replace(SAMPLING, batch_size=7))
    backwards = everything(family, SAMPLING, PROMPTS[::-1])
    assert whole == small == backwards
    fewer = everything(family, dataclasses.replace(SAMPLING, num_samples=2))
    assert fewer == {name: responses[:2] for name, responses in whole.items()}


def test_a_batch_size_below_num_samples_draws_one_question_at_a_time():
    decoder = SharedPromptDecoder(model("llama"))
    entering = []
    prefill = decoder.prefill_prompts
    decoder.prefill_prompts = lambda prompts: entering.append(len(prompts)) or prefill(prompts)
    small = dataclasses.replace(SAMPLING, batch_size=2)
    drawn = dict(sample(decoder, PROMPTS, TOKENIZER, small))
    assert entering == [1] * len(PROMPTS)
    by_question = {PROMPTS[index].question_id: responses for index, responses in drawn.items()}
    assert by_question == everything("llama", SAMPLING)


def literal_sample(reference, prompt, which, sampling):
    """One sample on its own, from the whole sequence at every step, with the documented draws."""
    one = range(which, which + 1)
    tokens = []
    for uniform in uniforms(sampling.seed, sampling.stream, prompt.question_id, one, 24)[0]:
        with torch.no_grad():
            logits = reference(torch.tensor([prompt.token_ids + tokens])).logits[0, -1]
        running = (logits / sampling.temperature).softmax(-1).cumsum(-1)
        tokens.append(int((running <= uniform * running[-1]).sum()))
        if tokens[-1] == TOKENIZER.eos_token_id:
            return tokens, "eos"
        if any(stop in TOKENIZER.decode(tokens) for stop in sampling.stop):
            return tokens, "stop"
    return tokens, "length"


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("sort_rows", [True, False])
def test_samples_equal_those_of_a_literal_sampler(sort_rows, family, monkeypatch):
    """Token by token, although rows are shared, split, moved and dropped; with frequent stops."""
    monkeypatch.setattr(SharedPromptDecoder, "prefers_sorted_rows", sort_rows)
    free = [one.token_ids for drawn in everything(family, SAMPLING).values() for one in drawn]
    pairs = {TOKENIZER.decode(ids[k : k + 2]) for ids in free for k in range(3, len(ids) - 1)}
    stop = sorted(pair for pair in pairs if re.fullmatch("[A-Za-z]{2}", pair))[::3]
    sampling = dataclasses.replace(SAMPLING, stop=stop)
    reference, drawn, reasons = model(family), everything(family, sampling), set()
    for prompt in PROMPTS:
        expected = [literal_sample(reference, prompt, j, sampling) for j in range(6)]
        responses = drawn[prompt.question_id]
        assert [(one.token_ids, one.finish_reason) for one in responses] == expected
        reasons |= {reason for _, reason in expected}
    assert {"stop", "length"} <= reasons


def test_samples_that_agree_so_far_share_one_row():
    """Fifty samples of a peaked model need few rows: one per distinct beginning."""
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


def test_rows_that_all_keep_their_places_are_not_reordered():
    decoder, orders = SharedPromptDecoder(model("llama")), []
    reorder = decoder.reorder
    decoder.reorder = lambda rows: orders.append(rows.tolist()) or reorder(rows)
    one = dataclasses.replace(SAMPLING, num_samples=1, stop=[])
    list(sample(decoder, PROMPTS[:1], TOKENIZER, one))
    assert orders == [[]]  # at the end


@pytest.mark.parametrize("step", [0, 3])
def test_nan_logits_are_an_error_that_names_question_and_step(step):
    decoder, taken = SharedPromptDecoder(model("llama")), []

    def breaking(method):
        def breaks(given):
            taken.append(given)
            return method(given) * (float("nan") if len(taken) == step + 1 else 1)

        return breaks

    decoder.prefill_prompts = breaking(decoder.prefill_prompts)
    decoder.step = breaking(decoder.step)
    unending = dataclasses.replace(SAMPLING, stop=[])
    with pytest.raises(InputError, match=rf"question q1: .*logits are NaN at step {step}; check"):
        list(sample(decoder, PROMPTS[1:2], TOKENIZER, unending))


@pytest.mark.parametrize("family", FAMILIES)
def test_batch_invariant_decoding_takes_one_question_at_a_time(family):
    """The same matrix shapes, hence the same bits, whatever else is sampled."""
    invariant = dataclasses.replace(SAMPLING, batch_invariant=True)
    shapes = {}

    def record_steps(prompts, indices):
        decoder = SharedPromptDecoder(model(family))
        step, steps = decoder.step, []
        decoder.step = lambda tokens: steps.append(tokens.tolist()) or step(tokens)
        for index, _ in sample(decoder, prompts, TOKENIZER, invariant, indices=indices):
            shapes.setdefault(prompts[index].question_id, []).append(list(steps))
            steps.clear()

    record_steps(PROMPTS, None)
    record_steps(PROMPTS[::-1], [2, 0])
    for runs in shapes.values():
        assert all(steps == runs[0] for steps in runs)
    assert sorted(map(len, shapes.values())) == [1, 1, 2, 2]


@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_trajectories_equal_those_of_generate(family):
    """Questions end at different steps, so that rows move into the gaps."""
    many = [Prompt(str(i), TOKENIZER(f"Shots. Q: {i * 7919}\nA:")["input_ids"]) for i in range(24)]
    reference, expected = model(family), []
    for prompt in many:
        ids = torch.tensor([prompt.token_ids])
        with torch.no_grad():
            whole = reference.generate(ids, do_sample=False, max_new_tokens=16, pad_token_id=0)
            logs = reference(whole).logits[0, ids.shape[1] - 1 : -1].log_softmax(-1)
        expected.append((whole[0, ids.shape[1] :].tolist(), -(logs.exp() * logs).sum(-1).float()))
    # The token that ends most responses, at different steps.
    ends = [{t: tokens.index(t) for t in tokens} for tokens, _ in expected]
    end = max(range(VOCABULARY), key=lambda t: len({places.get(t, 0) for places in ends}))
    words = tokenizer()
    words.eos_token = TOKENIZER.convert_ids_to_tokens(end)
    assert words.eos_token_id == end
    sampling = SamplingParams(temperature=0, max_new_tokens=16, stop=[], batch_size=10)
    ours = greedy(SharedPromptDecoder(model(family)), many, words, sampling)
    assert len({len(one.token_ids) for one in ours}) > 3
    for one, (tokens, entropy), places in zip(ours, expected, ends, strict=True):
        length = places.get(end, 15) + 1
        assert one.token_ids == tokens[:length]
        torch.testing.assert_close(torch.tensor(one.entropy), entropy[:length])


def test_the_shared_prefix_leaves_every_prompt_one_token():
    prompts = [Prompt("a", [1, 2, 3]), Prompt("b", [1, 2, 3, 4])]
    assert shared_prefix_length(prompts) == 2
    assert shared_prefix_length([Prompt("a", [1, 2, 3])]) == 2
    assert shared_prefix_length([Prompt("a", [1, 2]), Prompt("b", [2, 2, 3])]) == 0
