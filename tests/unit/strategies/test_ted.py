import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from zerogap.strategies.base import Context
from zerogap.strategies.filtering import filter_samples
from zerogap.strategies.ted import TED

TOKENS = st.lists(st.integers(0, 3), max_size=9)
NO_CONTEXT = Context([], [])


def literal_distance(a, b):
    """Levenshtein distance by its recursion, tabulated."""
    table = [[i + j if i * j == 0 else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            table[i][j] = min(
                table[i - 1][j] + 1,
                table[i][j - 1] + 1,
                table[i - 1][j - 1] + (a[i - 1] != b[j - 1]),
            )
    return table[len(a)][len(b)]


@settings(max_examples=300)
@given(
    trajectory=TOKENS,
    responses=st.lists(st.tuples(TOKENS, st.sampled_from("abcd")), max_size=6),
    tau=st.integers(0, 3),
    max_length=st.integers(1, 8),
)
def test_ted_keeps_what_the_authors_filter_keeps(trajectory, responses, tau, max_length):
    all_tokens, texts = [tokens for tokens, _ in responses], [text for _, text in responses]
    ted = TED(tau=tau, max_length=max_length).prepare(NO_CONTEXT)
    keep = ted.filter_responses(trajectory, all_tokens, texts)
    reference = trajectory[:max_length]
    kept_indices = []
    for index, (tokens, text) in enumerate(responses):
        if text in [texts[i] for i in kept_indices]:
            assert not keep[index]
            continue
        is_far = literal_distance(reference, tokens[: len(reference)]) > tau
        assert keep[index] == (is_far and text not in texts[:index])
        if keep[index]:
            kept_indices.append(index)


def test_the_end_token_does_not_count_in_the_distance():
    samples = pd.DataFrame({"token_ids": [[1, 2], [1, 2, 9], [1, 3, 9]], "text": list("abc")})
    samples = samples.assign(question_id="q", finish_reason=["stop", "eos", "eos"])
    ted = TED(tau=0).prepare(NO_CONTEXT).filter_responses
    for trajectory, finish_reason, kept in (
        ([1, 2, 9], "eos", ["c"]),
        ([1, 3], "length", ["a", "b"]),
    ):
        greedy = pd.DataFrame({"question_id": ["other", "q"], "token_ids": [[4], trajectory]})
        greedy["finish_reason"] = ["eos", finish_reason]
        assert list(filter_samples(samples, greedy, ted).text) == kept


def test_an_emptied_question_keeps_all_responses_only_in_the_unfiltered_variant():
    memorised = ([1, 2], [[1, 2], [1, 2]], ["a", "a"])
    dispersed = ([1, 2], [[1, 2], [7, 8, 9]], ["a", "b"])
    variant = TED(tau=1, when_empty="unfiltered").prepare(NO_CONTEXT).filter_responses
    headline = TED(tau=1).prepare(NO_CONTEXT).filter_responses
    assert headline(*memorised) == [False, False]
    assert variant(*memorised) == [True, True]
    assert headline(*dispersed) == variant(*dispersed) == [False, True]
