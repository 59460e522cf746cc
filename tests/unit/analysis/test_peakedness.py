import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerogap.analysis.peakedness import peakedness

TRAJECTORY = list(range(40))  # two edits are 5 % of it
TOKENS = st.lists(st.integers(0, 3), max_size=12)


def test_responses_within_five_per_cent_of_the_trajectory_count():
    responses = [TRAJECTORY, TRAJECTORY[2:], TRAJECTORY[3:], [99] * 40]
    assert peakedness(responses, TRAJECTORY) == 0.5


def test_the_longest_response_sets_how_many_edits_are_allowed():
    assert peakedness([TRAJECTORY[3:]], TRAJECTORY) == 0.0
    assert peakedness([TRAJECTORY[3:], [99] * 60], TRAJECTORY) == 0.5


def test_tokens_after_the_hundredth_are_not_compared():
    assert peakedness([[*range(100), 7, 7, 7, 7, 7, 7, 7]], list(range(100))) == 1.0


def test_without_responses_there_is_no_value():
    assert math.isnan(peakedness([], TRAJECTORY))


@given(TOKENS, st.integers(1, 5))
def test_copies_of_the_trajectory_have_peakedness_one(trajectory, copies):
    assert peakedness([trajectory] * copies, trajectory) == 1.0


@given(st.lists(TOKENS, min_size=1, max_size=5), TOKENS)
def test_peakedness_is_a_share_of_the_responses(responses, trajectory):
    count = peakedness(responses, trajectory) * len(responses)
    assert count == pytest.approx(round(count))
    assert 0 <= count <= len(responses)
