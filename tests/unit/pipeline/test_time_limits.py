"""The time limits of jobs."""

import pytest

from zerogap.pipeline import jobs

pytestmark = pytest.mark.usefixtures("in_checkout")


def test_a_time_limit_doubles_with_every_attempt_up_to_max_runtime(paper):
    limits = [jobs.time_limit(paper(), 480, attempt) for attempt in (1, 2, 3, 4)]
    assert limits == [480, 960, 1440, 1440]
    limits = [jobs.time_limit(paper(max_runtime=600), 480, attempt) for attempt in (1, 2, 3)]
    assert limits == [480, 600, 600]


def test_no_attempt_gets_more_than_max_runtime(paper):
    assert jobs.time_limit(paper(max_runtime=60), 1440, 1) == 60
