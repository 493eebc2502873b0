"""Which failures of a model request are tried again, and when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zotd.core.retry import BASE_S, CAP_S, JITTER, REPEATED, TRIES, Failure, ModelError, delay_s

MIDDLE = 0.5
"""The random number that moves a delay by nothing."""


def error(failure=Failure.SERVER, **fields):
    return ModelError(failure, "it failed", **fields)


def test_each_delay_is_twice_the_one_before():
    assert [delay_s(error(), tries, MIDDLE) for tries in range(1, TRIES + 1)] == [BASE_S, 2 * BASE_S, 4 * BASE_S]


def test_after_the_last_try_the_step_fails():
    assert delay_s(error(), TRIES + 1, MIDDLE) is None
    assert delay_s(error(retry_after_s=1), TRIES + 1, MIDDLE) is None


@pytest.mark.parametrize("failure", Failure)
def test_only_what_may_pass_by_itself_is_tried_again(failure):
    passing = {Failure.RATE_LIMIT, Failure.OVERLOADED, Failure.SERVER, Failure.CONNECTION, Failure.UNREACHABLE}
    assert (delay_s(error(failure), 1, MIDDLE) is not None) == (failure in passing)


@pytest.mark.parametrize("failure", sorted(set(Failure) - REPEATED))
def test_a_provider_cannot_ask_for_the_repetition_of_what_is_hopeless(failure):
    assert delay_s(error(failure, retry_after_s=1), 1, MIDDLE) is None


@given(st.floats(0, CAP_S), st.integers(1, TRIES), st.floats(0, 1, exclude_max=True))
def test_the_providers_own_delay_is_kept_to_the_letter(asked, tries, random):
    assert delay_s(error(retry_after_s=asked), tries, random) == asked


def test_a_provider_that_asks_for_too_much_patience_gets_none():
    assert delay_s(error(retry_after_s=CAP_S), 1, MIDDLE) == CAP_S
    assert delay_s(error(retry_after_s=CAP_S + 0.001), 1, MIDDLE) is None


@given(st.integers(1, TRIES), st.floats(0, 1, exclude_max=True))
def test_delays_are_spread_around_the_plan_and_never_too_long(tries, random):
    planned = BASE_S * 2 ** (tries - 1)
    delay = delay_s(error(), tries, random)
    assert delay is not None
    assert planned * (1 - JITTER) <= delay <= min(CAP_S, planned * (1 + JITTER))


def test_sessions_that_failed_together_do_not_come_back_together():
    assert len({delay_s(error(), 1, number / 10) for number in range(10)}) == 10


def test_the_sentence_is_for_the_user():
    failed = ModelError(Failure.AUTH, "the key was refused; zot login gets a new one")
    assert str(failed) == failed.sentence == "the key was refused; zot login gets a new one"
