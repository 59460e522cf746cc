import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zerogap.engine.randomness import uniforms


@given(st.integers(0, 2**40), st.text(max_size=5), st.text(max_size=8))
def test_a_draw_depends_only_on_its_sample_and_step(seed, stream, question):
    whole = uniforms(seed, stream, question, range(6), 20)
    assert whole.shape == (6, 20)
    assert ((whole >= 0) & (whole < 1)).all()
    np.testing.assert_array_equal(uniforms(seed, stream, question, range(4, 6), 7), whole[4:, :7])


def test_samples_questions_streams_and_seeds_are_independent():
    reference = uniforms(0, "s", "q", range(2), 2000)
    others = [
        reference[1],
        uniforms(1, "s", "q", range(1), 2000)[0],
        uniforms(0, "t", "q", range(1), 2000)[0],
        uniforms(0, "s", "p", range(1), 2000)[0],
    ]
    for other in others:
        assert abs(np.corrcoef(reference[0], other)[0, 1]) < 0.08
    assert abs(reference.mean() - 0.5) < 0.02


def test_the_draws_of_a_seed_never_change():
    """They are part of the protocol: another version must draw the same samples."""
    numbers = uniforms(0, "strategies", "test-0000", range(1), 3)[0]
    np.testing.assert_allclose(numbers, EXPECTED, rtol=0, atol=1e-15)


EXPECTED = [0.9083261986805855, 0.19846952299025933, 0.5396394788584458]
