import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from zerogap.strategies.base import Context
from zerogap.strategies.filtering import passing
from zerogap.strategies.ted import TED

TOKENS = st.lists(st.integers(0, 3), max_size=9)


def literal_distance(a, b):
    """Levenshtein by its recursion, tabulated."""
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
def test_it_is_the_authors_filter(trajectory, responses, tau, max_length):
    tokens, texts = [t for t, _ in responses], [t for _, t in responses]
    kept = (
        TED(tau=tau, max_length=max_length).prepare(Context([], [])).keep(trajectory, tokens, texts)
    )
    reference = trajectory[:max_length]
    written = []
    for index, (own, text) in enumerate(responses):
        if text in [texts[i] for i in written]:
            assert not kept[index]
            continue
        far = literal_distance(reference, own[: len(reference)]) > tau
        assert kept[index] == (far and text not in texts[:index])
        if kept[index]:
            written.append(index)


def test_the_end_token_is_no_part_of_the_text():
    samples = pd.DataFrame(
        {
            "question_id": "q",
            "token_ids": [[1, 2], [1, 2, 9], [1, 3, 9]],
            "finish_reason": ["stop", "eos", "eos"],
            "text": ["a", "b", "c"],
        }
    )
    keep = TED(tau=0).prepare(Context([], [])).keep
    assert list(passing(samples, {"q": ([1, 2, 9], "eos")}, keep).text) == ["c"]
    assert list(passing(samples, {"q": ([1, 3], "length")}, keep).text) == ["a", "b"]
