"""Until when a model that has failed is not asked."""

import pytest

from zotd.core.outages import FIRST_REST_S, GROWTH, KEPT, ModelOutages
from zotd.core.retry import Failure, ModelError

BUSY = ModelError(Failure.OVERLOADED, "busy")


@pytest.fixture
def outages():
    return ModelOutages()


def rest_s(outages, key, now):
    """How long it rests from `now` on."""
    return next(seconds for seconds in range(100_000) if not outages.rests(key, now + seconds))


def test_a_model_that_has_not_failed_is_asked(outages):
    assert not outages.rests("m", 0)
    assert outages.error("m") is None


def test_a_model_rests_after_a_failure_and_is_known_to_have_failed_until_it_answers(outages):
    outages.failed("m", BUSY, 100)
    assert rest_s(outages, "m", 100) == FIRST_REST_S
    assert not outages.rests("other", 100)
    assert outages.error("m") is BUSY
    outages.answered("m")
    assert outages.error("m") is None
    assert not outages.rests("m", 100)


def test_each_failure_after_a_rest_doubles_it_up_to_the_longest(outages):
    now, rests = 0, []
    for _ in range(8):
        outages.failed("m", BUSY, now)
        rests.append(rest_s(outages, "m", now))
        now += rests[-1]
    assert rests[:3] == [FIRST_REST_S, 2 * FIRST_REST_S, 4 * FIRST_REST_S]
    assert rests[-1] == GROWTH * FIRST_REST_S


def test_many_runs_that_notice_an_outage_together_do_not_make_it_longer(outages):
    for _ in range(10):
        outages.failed("m", BUSY, 0)
    assert rest_s(outages, "m", 0) == FIRST_REST_S


def test_a_failure_that_does_not_pass_by_itself_rests_for_the_longest_time(outages):
    outages.failed("m", ModelError(Failure.QUOTA, "no credit"), 0)
    assert rest_s(outages, "m", 0) == GROWTH * FIRST_REST_S


def test_a_vendor_s_retry_after_counts_if_it_is_longer(outages):
    outages.failed("m", ModelError(Failure.RATE_LIMIT, "slow down", retry_after_s=3600), 0)
    outages.failed("n", ModelError(Failure.RATE_LIMIT, "slow down", retry_after_s=1), 0)
    assert (rest_s(outages, "m", 0), rest_s(outages, "n", 0)) == (3600, FIRST_REST_S)


def test_the_oldest_outage_is_forgotten_first(outages):
    for number in range(KEPT + 1):
        outages.failed(number, BUSY, 0)
    assert outages.error(0) is None
    assert outages.error(1) is BUSY
