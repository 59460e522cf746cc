import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.tiny_models import model, tokenizer
from zerogap.engine.decoder import Prompt, Rows, SamplingParams
from zerogap.engine.sampler import greedy, sample
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
from zerogap.sampling.recovery import force_runner_up, forced_steps

VOCABULARY = 5


def forced_token(trajectory, step, row_step, logits):
    """The only token that a row may take, or None if it may take any; literally."""
    if row_step > step:
        return None
    if row_step < step:
        return trajectory[row_step]
    others = [token for token in range(VOCABULARY) if token != trajectory[step]]
    return max(others, key=lambda token: logits[token])


tokens = st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=6)
distinct_logits = st.permutations([-2.0, -1.0, 0.5, 1.0, 3.0])


@settings(max_examples=200, deadline=None)
@given(
    prompts=st.lists(tokens.flatmap(
        lambda t: st.tuples(st.just(t), st.integers(0, len(t) - 1), st.integers(0, 7),
                            distinct_logits)), min_size=1, max_size=4)
)  # fmt: skip
def test_rows_follow_the_trajectory_take_the_runner_up_and_are_free_again(prompts):
    trajectories, steps, row_steps, logits = zip(*prompts, strict=True)
    edit_logits = force_runner_up(trajectories, steps)
    rows = Rows(torch.arange(len(prompts)), torch.tensor(row_steps), torch.empty(len(prompts), 0))
    edited = edit_logits(torch.tensor(logits), rows)
    for row, before, *prompt in zip(edited, logits, trajectories, steps, row_steps, strict=True):
        token = forced_token(*prompt, before)
        allowed = [token] if token is not None else list(range(VOCABULARY))
        assert row.isfinite().nonzero()[:, 0].tolist() == allowed
        if token is None:
            assert row.tolist() == list(before)


def test_sampled_responses_leave_the_trajectory_at_their_step():
    words, net, decoder = tokenizer(), model("llama"), SharedPromptDecoder(model("llama"))
    question = Prompt("q", words("Q: how many?\nA:")["input_ids"])
    plain = SamplingParams(temperature=0, max_new_tokens=10)
    trajectory = greedy(decoder, [question], words, plain)[0].token_ids
    steps = list(range(len(trajectory)))
    prompts = [Prompt(f"q/{step}", question.token_ids) for step in steps]
    sampling = SamplingParams(temperature=0.7, max_new_tokens=10)
    edit_logits = force_runner_up([trajectory] * len(steps), steps)
    for index, (response,) in sample(decoder, prompts, words, sampling, edit_logits):
        step = steps[index]
        assert response.token_ids[:step] == trajectory[:step]
        with torch.no_grad():
            ids = torch.tensor([question.token_ids + trajectory[:step]])
            runner_up = net(ids).logits[0, -1].topk(2).indices[1]
        assert response.token_ids[step] == runner_up


def test_steps_are_uniform_over_the_trajectory_and_belong_to_the_question():
    steps = forced_steps("a", length=5, num_samples=2000, seed=0)
    counts = torch.bincount(torch.tensor(steps), minlength=5)
    assert len(counts) == 5
    assert (counts > 320).all()  # 400 expected, standard deviation 18
    assert forced_steps("a", 5, 20, 0) == steps[:20]
    assert forced_steps("b", 5, 20, 0) != steps[:20]
    assert forced_steps("a", 5, 20, 1) != steps[:20]
