"""Strategies for hypothesis: counts of right responses."""

from hypothesis import strategies as st


@st.composite
def counts(draw, max_samples=60):
    """A strategy's and the clean model's counts on a handful of questions."""
    n = draw(st.integers(1, 12))
    samples = draw(st.lists(st.integers(0, max_samples), min_size=n, max_size=n))
    clean_samples = draw(st.lists(st.integers(1, max_samples), min_size=n, max_size=n))
    correct = [draw(st.integers(0, m)) for m in samples]
    clean_correct = [draw(st.integers(0, m)) for m in clean_samples]
    return correct, samples, clean_correct, clean_samples
